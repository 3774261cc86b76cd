"""Random verbs of random jobs, asked of random agents, while agents come and go: all agents end with the same jobs.

A model says what each job is. Each run that is asked for has the outcome that the model says, once.
"""

from contextlib import AsyncExitStack
from itertools import count

import anyio
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from kit import until
from schedule import Every
from scheduler import JobState, Outcome, Scheduler, current_run
from scheduler.stores.postgres import PostgresStore

IDS = ["a", "b", "c", "d", "e"]
VERBS = ["add", "replace", "remove", "update", "pause", "resume", "run", "run", "pause all", "resume all", "come", "go"]

schemas = count(1)
steps = st.tuples(st.sampled_from(VERBS), st.sampled_from(IDS), st.integers(0, 2))


class World:
    """Agents, and the model of their jobs: by id its argument, and whether it is paused."""

    def __init__(self, dsn, schema):
        self.where = {"dsn": dsn, "schema": schema}
        self.agents = {}
        self.names = (f"agent {number}" for number in count(1))
        self.arguments = count(1)
        self.jobs = {}
        self.all_paused = False
        self.ran = []

    async def come(self, stack):
        if len(self.agents) == 3:
            return
        name = next(self.names)
        s = Scheduler(store=PostgresStore(**self.where, shared=True, name=name), poll="20ms")

        async def work(word):
            self.ran.append((current_run().job_id, current_run().due, word))
            return word

        s.register("work", work)
        self.agents[name] = await stack.enter_async_context(s)

    async def step(self, verb, id, which, stack):
        name = list(self.agents)[which % len(self.agents)]
        s = self.agents[name]
        if verb == "come":
            await self.come(stack)
        elif verb == "go" and len(self.agents) > 1:
            self.agents.pop(name).stop()
            return
        elif verb in {"pause all", "resume all"}:
            self.all_paused = verb == "pause all"
            (s.pause if self.all_paused else s.resume)()
        elif id in self.jobs:
            await self.change(s, verb, s.get(id), self.jobs[id])
        elif verb in {"add", "replace"}:
            self.jobs[id] = [next(self.arguments), False]
            s.add("work", Every("400d"), id=id, args=(self.jobs[id][0],), on_conflict="error")
        await s.flush()
        await until(self.is_agreed)

    async def change(self, s, verb, job, expected):
        """`expected`: what the model says of the job."""
        match verb:
            case "replace":
                expected[:] = next(self.arguments), False
                s.add("work", Every("400d"), id=job.id, args=(expected[0],), on_conflict="replace")
            case "remove":
                s.remove(job.id)
                del self.jobs[job.id]
            case "update":
                expected[0] = next(self.arguments)
                job.update(args=(expected[0],))
            case "pause":
                job.pause("by hand")
                expected[1] = True
            case "resume":
                job.resume()
                expected[1] = False
            case "run":
                end = await job.run_now()
                assert (end.outcome, end.result) == (Outcome.SUCCEEDED, expected[0])

    def is_agreed(self):
        return all(self.seen_by(s) == self.expected() for s in self.agents.values())

    def expected(self):
        return {id: (word, self.all_paused or is_paused) for id, (word, is_paused) in self.jobs.items()}

    def seen_by(self, s):
        return {job.id: (job.args[0], job.state is JobState.DISABLED) for job in s.jobs()}


async def play(dsn, schema, plan):
    with anyio.fail_after(120):
        async with AsyncExitStack() as stack:
            world = World(dsn, schema)
            await world.come(stack)
            await world.come(stack)
            for verb, id, which in plan:
                await world.step(verb, id, which, stack)
            assert len({(id, due) for id, due, _ in world.ran}) == len(world.ran)


def test_all_agents_end_with_the_same_jobs(postgres_server, postgres_schema):
    """Whatever is asked of whom."""

    @settings(
        max_examples=4,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(steps, min_size=10, max_size=16))
    def play_all(plan):
        schema = f"{postgres_schema}_{next(schemas)}"
        anyio.run(play, postgres_server.dsn, schema, [("add", "a", 0), ("add", "b", 1), *plan])

    play_all()
