"""The floor for timers alone: `heapq` and a sleeping thread; nothing can be added or cancelled meanwhile."""

import time
from heapq import heappop, heappush

from child import Values, serve
from meters import cpu_s, peak_rss_mib
from workload import spread


def timerqueue(timers: int, over_s: float, lead_s: float) -> Values:
    """A function is called at each deadline."""
    left = timers

    def hit() -> None:
        nonlocal left
        left -= 1

    began, cpu = time.monotonic(), cpu_s()
    start = began + lead_s
    heap: list[tuple[float, int]] = []
    for number, offset in enumerate(spread(timers, over_s)):
        heappush(heap, (start + offset, number))
    push_s = time.monotonic() - began
    while heap:
        now = time.monotonic()
        if heap[0][0] > now:
            time.sleep(heap[0][0] - now)
            continue
        heappop(heap)
        hit()
    assert not left
    return {
        "push_s": push_s,
        "last_after_s": time.monotonic() - (start + over_s),
        "timer_us": (cpu_s() - cpu) / timers * 1e6,
        "peak_mib": peak_rss_mib(),
    }


if __name__ == "__main__":
    serve({"timerqueue": timerqueue})
