"""Commands that run no checks: about fleets and their servers, workers, and trials.

Each module is imported on its own, so that a command loads only what it needs.
"""
