"""Cron expressions read by croniter."""

from datetime import datetime

from child import Values, serve
from croniter import croniter
from expressions import NOW, expressions
from meters import cpu_s


def cron(count: int) -> Values:
    """Each expression parsed, and its first start after now found."""
    texts = expressions(count)
    began = cpu_s()
    starts: list[datetime] = [croniter(text, NOW).get_next(datetime) for text in texts]
    return {"seconds": cpu_s() - began, "each_us": (cpu_s() - began) / len(starts) * 1e6}


if __name__ == "__main__":
    serve({"cron": cron}, distribution="croniter")
