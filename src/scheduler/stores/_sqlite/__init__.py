"""The parts of the store in SQLite."""
