"""Our scheduler with a store in PostgreSQL, on a Unix socket."""

from child import serve
from our_databases import postgres, postgres_store
from our_durable import measurements

if __name__ == "__main__":
    serve(measurements(postgres, postgres_store), distribution="timerqueue")
