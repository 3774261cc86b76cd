"""Parts of PostgresStore."""
