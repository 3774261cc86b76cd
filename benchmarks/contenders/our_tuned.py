"""Our scheduler with `tune_gc`, as docs/recipes.md says for many jobs."""

from child import serve
from our_replaced import replaced

from scheduler import tune_gc

if __name__ == "__main__":
    serve({"replaced": replaced(tune_gc())}, distribution="timerqueue")
