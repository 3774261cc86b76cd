"""Parts of MemoryStore."""
