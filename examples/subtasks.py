"""A job that first looks and then works: it returns a subtask for each thing that it finds.

The run ends with the last of them.
"""

import anyio

from scheduler import RunEnded, Scheduler, Subtask


async def look() -> list[Subtask]:
    return [Subtask(work, number, needs="machine") for number in range(6)]


async def work(number: int) -> str:
    await anyio.sleep(0.05)
    return f"part {number} done"


async def main() -> None:
    s = Scheduler(limit=10, limits={"machine": 2})  # two parts at a time, however many there are
    s.add(look, "@every 1m", id="parts")
    ended: dict[str, RunEnded] = await s.run_once()
    for result in ended["parts"].results:
        print(result)


anyio.run(main)
