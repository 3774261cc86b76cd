"""Two jobs, one on a grid of 200 ms and one counted from the end of its last run, under a limit of ten tasks."""

import anyio

from scheduler import Scheduler, current_run


async def greet(name: str) -> None:
    print(f"{current_run().due:%H:%M:%S.%f}  hello {name}")


async def main() -> None:
    async with Scheduler(limit=10) as s:
        s.add(greet, "@every 200ms", id="grid", args=("grid",))
        s.add(greet, "@after 300ms", id="pause", args=("pause",))
        await anyio.sleep(1)


anyio.run(main)
