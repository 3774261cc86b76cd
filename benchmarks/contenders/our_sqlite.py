"""Our scheduler with a store in SQLite, with the store's defaults: WAL, synchronous FULL."""

from child import serve
from our_databases import SQLiteStore, sqlite
from our_durable import measurements

if __name__ == "__main__":
    serve(measurements(sqlite, SQLiteStore), distribution="timerqueue")
