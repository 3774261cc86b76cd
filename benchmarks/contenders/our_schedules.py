"""Our schedules alone: nothing of the scheduler is imported."""

from child import Values, serve
from expressions import NOW, expressions
from meters import cpu_s

from schedule import Cron


def cron(count: int) -> Values:
    """Each expression parsed, and its first start after now found."""
    texts = expressions(count)
    began = cpu_s()
    starts = [Cron(text).next(NOW) for text in texts]
    return {"seconds": cpu_s() - began, "each_us": (cpu_s() - began) / len(starts) * 1e6}


if __name__ == "__main__":
    serve({"cron": cron}, distribution="timerqueue")
