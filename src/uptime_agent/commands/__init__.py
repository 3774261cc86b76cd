"""Commands beside those that run checks: about fleets and their servers, workers, and tries by hand.

Each module is imported by its own name, so that a command loads what it needs and no more.
"""
