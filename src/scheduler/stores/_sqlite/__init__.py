"""Parts of SQLiteStore."""
