"""Acts, outages, reloads, restarts and deaths in any order, against a model of what an operator expects."""

from random import Random

import pytest
from attrs import define, field

from kit import until
from uptime_agent.acts import ActRefused

pytestmark = pytest.mark.anyio

NAMES = ("shop", "blog", "db")
TAGS = {"shop": "web", "blog": "web", "db": "data"}
STEPS = 40


@define
class Expected:
    """What an operator expects of one target. `silences`: scopes that silence it."""

    silences: set = field(factory=set)
    is_known: bool = False
    is_paused: bool = False
    incident: str | None = None
    was_told: bool = False
    ends: int = 0
    """Ends that wait for the end of a silence."""
    told: list = field(factory=list)

    def checked(self, incident):
        """Take the incident that is open after a check, or None."""
        before, self.incident = self.incident, incident
        if before is not None and incident != before:
            self.is_known = False
            if self.was_told and self.silences:
                self.ends += 1
            elif self.was_told:
                self.told.append("resolved")
            self.was_told = False
        if incident is not None and incident != before and not self.silences:
            self.was_told = True
            self.told.append("trigger")

    def silenced(self, scope):
        self.silences.add(scope)

    def heard_again(self, scope):
        """A silence ends."""
        self.silences.discard(scope)
        if self.silences:
            return
        self.told += ["resolved"] * self.ends
        self.ends = 0
        if self.incident is None:
            return
        if not self.was_told:
            self.told.append("trigger")
        elif not (self.is_known or self.is_paused):
            self.told.append("reminder")
        self.was_told = True


class Story:
    """One interleaving."""

    def __init__(self, world, seed, tomorrow):
        self.world, self.random, self.tomorrow = world, Random(seed), tomorrow
        self.expected = {name: Expected() for name in NAMES}
        self.agent = None
        self.done = []

    def text(self):
        """Write the file, a bit different each time."""
        timeout = f'timeout = "{self.random.randint(2_000, 9_000)}ms"'
        return self.world.text(*((name, f'tags = ["{TAGS[name]}"]', timeout) for name in NAMES), ("witness",))

    def scope(self, name):
        """The target itself or its tag."""
        return self.random.choice([{"target": name}, {"tag": TAGS[name]}])

    def covered(self, scope):
        """The targets in a scope."""
        return [name for name in NAMES if scope in ({"target": name}, {"tag": TAGS[name]})]

    async def check(self, name):
        expected = self.expected[name]
        incident = self.agent.target(name).incident
        assert (None if incident is None else incident.id) == expected.incident
        await self.agent.check(name)
        incident = self.agent.target(name).incident
        expected.checked(None if incident is None else incident.id)
        await self.everybody_has_heard()  # a silence would hold back what has not been sent yet

    async def step(self):
        """Do anything, and see that all is as expected."""
        name = self.random.choice(NAMES)
        verb = self.random.choice(
            ["outage", "check", "check", "check", "acknowledge", "silence", "end", "end", "pause", "resume", "reload"]
        )
        self.done.append((verb, name))
        await getattr(self, f"_{verb}")(name)
        self.compare()

    async def _outage(self, name):
        self.world.down.symmetric_difference_update({name})

    async def _check(self, name):
        await self.check(name)

    async def _acknowledge(self, name):
        expected = self.expected[name]
        if expected.incident is None:
            with pytest.raises(ActRefused, match="nothing to acknowledge"):
                self.agent.acts.acknowledge(name, reason="I know", actor="ann")
        else:
            self.agent.acts.acknowledge(name, reason="I know", actor="ann")
            expected.is_known = True

    async def _silence(self, name):
        scope = self.scope(name)
        self.agent.acts.silence(**scope, until=self.tomorrow, reason="deployment", actor="ann")
        for each in self.covered(scope):
            self.expected[each].silenced(str(scope))

    async def _end(self, name):
        scope = self.scope(name)
        if str(scope) not in self.expected[name].silences:
            with pytest.raises(ActRefused, match="there is no silence"):
                self.agent.acts.end_silence(**scope, actor="bob")
            return
        self.agent.acts.end_silence(**scope, actor="bob")
        for each in self.covered(scope):
            self.expected[each].heard_again(str(scope))
        await self.everybody_has_heard()

    async def _pause(self, name):
        self.agent.acts.pause(name, reason="moving house", actor="ann")
        self.expected[name].is_paused = True

    async def _resume(self, name):
        if self.expected[name].is_paused:
            self.agent.acts.resume(name, actor="bob")
        self.expected[name].is_paused = False

    async def _reload(self, name):
        await self.agent.reload(self.text())

    def compare(self):
        """What holds is what people did, and nothing else."""
        for name, expected in self.expected.items():
            standing = self.agent.acts.acts_of(name)
            assert (standing.acknowledged is not None) is expected.is_known, self.done
            assert (standing.silenced is not None) is bool(expected.silences), self.done
            assert (standing.paused is not None) is expected.is_paused, self.done
            assert (self.agent.scheduler.get(name).error == "moving house") is expected.is_paused, self.done

    async def everybody_has_heard(self):
        """Wait until everybody heard what they should."""
        for name, expected in self.expected.items():
            await until(lambda n=name, e=expected: len(self.world.told_of(n)) >= len(e.told))

    async def has_told(self):
        """Wait until everybody heard what they should, and no more."""
        witness, count = "witness", self.world.told_of("witness").count("trigger")
        self.world.down.add(witness)
        await self.agent.check(witness)
        await until(lambda: self.world.told_of(witness).count("trigger") > count)
        self.world.down.discard(witness)
        while self.agent.target(witness).incident is not None:
            await self.agent.check(witness)
        await self.everybody_has_heard()
        for name, expected in self.expected.items():
            assert sorted(self.world.told_of(name)) == sorted(expected.told), (name, self.done)

    async def _live(self, steps):
        for _ in range(steps):
            await self.step()
        await self.has_told()
        await self.agent.stored()
        if self.random.random() < 0.5:
            self.done.append(("dies", None))
            self.world.dies()
        else:
            self.done.append(("stops", None))

    async def tell(self):
        """Live several lives."""
        text = self.text()
        for _ in range(3):
            async with self.world.agent(text) as self.agent:
                await until(lambda: all(self._is_recalled(name) for name in NAMES))
                self.compare()
                await self._live(STEPS // 3)
            text = None

    def _is_recalled(self, name):
        incident = self.agent.target(name).incident
        return (None if incident is None else incident.id) == self.expected[name].incident


@pytest.mark.parametrize("seed", range(6))
async def test_any_story_of_acts_and_outages_ends_as_an_operator_expects(world, seed, tomorrow):
    """A silenced target never sends; a recovery ends an acknowledgement; no act is lost by a restart or a death."""
    await Story(world, seed, tomorrow).tell()
