"""The parts of the store in PostgreSQL."""
