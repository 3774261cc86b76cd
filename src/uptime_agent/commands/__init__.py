"""Commands that run no checks. Each module is imported alone, to load only what it needs."""
