"""Our scheduler with Python's own settings of the garbage collector."""

from contextlib import nullcontext

from child import serve
from our_replaced import replaced

if __name__ == "__main__":
    serve({"replaced": replaced(nullcontext())}, distribution="timerqueue")
