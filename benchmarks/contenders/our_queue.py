"""Our timer queue alone: nothing of the scheduler is imported."""

import asyncio
import time

from child import Unable, Values, serve
from meters import cpu_s, peak_rss_mib
from workload import spread

from timerqueue import TimerQueue


def timerqueue(timers: int, over_s: float, lead_s: float) -> Values:
    """Timers alone: the queue calls a function at each deadline, without a pool."""

    async def main() -> Values:
        queue = TimerQueue()
        left = timers

        def hit() -> None:
            nonlocal left
            left -= 1
            if not left:
                queue.stop()

        began, cpu = time.monotonic(), cpu_s()
        start = began + lead_s
        for offset in spread(timers, over_s):
            queue.push(start + offset, hit)
        push_s = time.monotonic() - began
        if push_s > lead_s:
            raise Unable("was still pushing at the first deadline: measure again on a calmer machine")
        await queue.run()
        return {
            "push_s": push_s,
            "last_after_s": time.monotonic() - (start + over_s),
            "timer_us": (cpu_s() - cpu) / timers * 1e6,
            "peak_mib": peak_rss_mib(),
        }

    return asyncio.run(main())


if __name__ == "__main__":
    serve({"timerqueue": timerqueue}, distribution="timerqueue")
