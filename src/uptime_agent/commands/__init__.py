"""Commands that run no checks. Each module is imported alone: a command loads only what it needs."""
