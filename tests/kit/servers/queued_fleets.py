"""What tests of queues on real servers share: schedulers on one PostgreSQL and one beanstalkd, and who has run what."""

from collections import Counter, defaultdict
from contextlib import asynccontextmanager

from psycopg import OperationalError, connect

from kit import until
from scheduler import Scheduler, current_run
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.stores import Execution
from scheduler.stores.postgres import PostgresStore
from timerqueue import SystemClock

LIVE = f"SELECT {', '.join(Execution._fields)} FROM execution WHERE status IN ('pending', 'scheduled') ORDER BY due_us"


class QueuedFleet:
    """Agents on the same servers. `runs`: (job id, due instant) of each run, as its task has noted it, and in `begun`
    by who ran it; `early`: those before they were due. `ttr`: of their queues. `options`: of all their schedulers.
    """

    def __init__(self, dsn, schema, broker, *, ttr=10, **options):
        self.dsn = dsn
        self.schema = schema
        self.broker = broker
        self._ttr = ttr
        self._options = options
        self.runs = []
        self.begun = defaultdict(list)
        self.early = []
        self._hand = None

    @asynccontextmanager
    async def agent(self, name="agent", *, dsn=None, broker=None, reservers=1, hold=None, labels=None, **options):
        """Let a scheduler run until the end of the block, on these servers or through proxies. `hold`: another task."""
        store = PostgresStore(dsn or self.dsn, schema=self.schema, shared=True, name=name, labels=labels)
        queue = BeanstalkdQueue(broker or self.broker.address, ttr=self._ttr, reservers=reservers)
        s = Scheduler(store=store, queue=queue, **self._options, **options)

        async def work():
            self.note(name)

        s.register("work", work)
        if hold is not None:
            s.register("hold", hold)
        self.prepare(s)
        async with s:
            yield s
            s.stop(grace=0)

    def prepare(self, s):
        """Do what else is to be done before it starts."""

    def note(self, name):
        """Note the run that goes on."""
        run = current_run()
        tick = run.job_id, run.due
        self.runs.append(tick)
        self.begun[name].append(tick)
        if SystemClock().wall() < run.due.timestamp():
            self.early.append(tick)

    async def goes_on(self, runs):
        """Wait until there have been so many more."""
        before = len(self.runs)
        await until(lambda: len(self.runs) >= before + runs)

    def ask(self, statement, *asked):
        """Ask over one connection, or over a new one where a restart has ended it. No agent is made for that: it would
        join, and the others would see it.
        """
        try:
            return self._connection().execute(statement, asked or None).fetchall()
        except OperationalError:
            self.close()
            return self._connection().execute(statement, asked or None).fetchall()

    def _connection(self):
        if self._hand is None:
            self._hand = connect(self.dsn, autocommit=True)
            self._hand.execute(f"SET search_path TO {self.schema}")
        return self._hand

    def close(self):
        """Let go of the connection."""
        if self._hand is not None:
            self._hand.close()
            self._hand = None

    def live(self):
        """Return all live executions."""
        return [Execution(*row) for row in self.ask(LIVE)]

    def check(self):
        """See that no tick has run twice, and none early."""
        assert [tick for tick, count in Counter(self.runs).items() if count > 1] == []
        assert self.early == []
