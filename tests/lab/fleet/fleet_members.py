"""A fleet of agents as processes (fleet_agent.py) on one PostgreSQL and perhaps one beanstalkd, each behind proxies of
its own, and what it leaves behind.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from itertools import chain, cycle
from pathlib import Path

import psycopg

from fleet_agent import FENCES, QUEUED
from fleet_evidence import Edit, Evidence, Record, Trouble, read_log
from kit import PATIENCE, wait_until
from proxy import Proxy
from server_outages import Standby, stand_alone

PROGRAM = Path(__file__).with_name("fleet_agent.py")
MARKS = b'{"running"'
"""What is only said with the statement that puts marks. Its text is said once in a session."""

ARRIVES = PATIENCE / 20
"""Seconds in which an agent that has something to do commits. One that does not is troubled without a commit."""

LOOKS = PATIENCE / 300
"""Seconds from one look at who has ended by itself to the next."""

WATCH_THE_GONE = """
    CREATE TABLE {schema}.gone (epoch bigint, at timestamptz);
    CREATE FUNCTION {schema}.note_gone() RETURNS trigger LANGUAGE plpgsql AS
        $$ DECLARE off text; at timestamptz; BEGIN
            LOOP
                off := pg_read_file('{clock}');
                at := clock_timestamp();
                EXIT WHEN off = pg_read_file('{clock}');
            END LOOP;
            INSERT INTO {schema}.gone VALUES (OLD.epoch, at - make_interval(secs => off::float));
            RETURN NULL;
        END $$;
    CREATE TRIGGER gone AFTER DELETE ON {schema}.agent FOR EACH ROW EXECUTE FUNCTION {schema}.note_gone();
"""
"""The instant at which the row of an agent goes: the row's lock is held by then, so its last commit is over. It is told
by the clock of this machine: that of the server may have been set, and its file says by how much.
"""

RECORDS = """
    SELECT job_id, due_us, outcome, fence + {fences}, coalesce(last_due_us, due_us), coalesce(reason, ''),
        coalesce(ended_us, 0)
    FROM {schema}.tick WHERE outcome <> 'succeeded'
"""
QUARANTINED = "SELECT id FROM {schema}.job WHERE paused LIKE 'quarantined%'"
GONE = """
    SELECT epoch + ({fences} >> 32), floor(extract(epoch FROM at) * 1000000)::bigint FROM {schema}.gone
"""


def us_now():
    """The time of all that is written, in microseconds."""
    return time.monotonic_ns() // 1000


class Member:
    """A place in the fleet: one agent after another lives there, all behind the same proxy."""

    def __init__(self, fleet, name, distance=0.0):
        self.fleet = fleet
        self.name = name
        self.proxy = Proxy(fleet.door or socket_of(fleet.server), distance)
        self.broker_proxy = Proxy(fleet.broker.path) if fleet.broker else None
        self.process = None
        self.number = -1
        self.is_wanted = False
        self.held = ""
        self._answers = queue.Queue()

    def proxies(self):
        """What lies between it and its servers."""
        return filter(None, (self.proxy, self.broker_proxy))

    def start(self, jobs=(), **more):
        """Start an agent here and wait until it runs, or another one that was started in its place."""
        self.launch(jobs, **more)
        self.await_begin()

    def await_begin(self):
        """Wait until an agent that has been launched here runs."""
        wait_until(self._runs)

    def _runs(self):
        with contextlib.suppress(queue.Empty):
            return self._answers.get_nowait() == {"runs": True}
        return False

    def launch(self, jobs=(), **more):
        """Start an agent here. `more`: what it alone is told."""
        fleet = self.fleet
        self.number = fleet.new_number()
        fleet.names[self.number] = self.name
        config = (
            fleet.config
            | {
                "dsn": fleet.dsn or self.proxy.dsn,
                "log": str(fleet.log_of(self.number)),
                "name": self.name,
                "told": str(fleet.folder / f"{self.name}.told"),
                "jobs": dict(jobs),
                "broker": f"127.0.0.1:{self.broker_proxy.port}" if self.broker_proxy else "",
            }
            | more
        )
        self.close()
        self._answers = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TIMERQUEUE_DEFECT": fleet.defect} | fleet.environment,
        )
        self.is_wanted = True  # not before: the process of its last life has ended, and would be started again
        threading.Thread(target=self._read, args=(self.process.stdout, self._answers), daemon=True).start()

    def signal(self, number):
        """Send a signal to it."""
        self.process.send_signal(number)

    def kill(self):
        """End it at once."""
        self.is_wanted = False
        self.process.kill()
        self.process.wait()

    def leave(self):
        """Ask it to end in order, and wait for that."""
        self.is_wanted = False
        since = us_now()
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.fleet.note("hung", self.number, since)
            self.kill()

    def ask(self, meanwhile=lambda: None, **command):
        """Have it do something. Returns whether it is durable; None: nobody knows."""
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            meanwhile()
            while "done" not in (answer := self._answers.get(timeout=PATIENCE)):
                pass  # it has just come
            return answer["done"]
        except (OSError, queue.Empty):
            return None

    def hold_a_commit(self, *, answer):
        """Hold its next commit of marks, or the answer to it. `held` says which, if one has come, or "" if none has."""
        self.held = (
            ("answer" if answer else "words") if self.proxy.hold(after=MARKS, answer=answer).wait(ARRIVES) else ""
        )
        if not self.held:
            self.proxy.let_go()

    def close(self):
        """Let go of the process that was here last, and end it if it still lives."""
        if self.process is not None:
            self.process.kill()
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            self.process.wait()

    def _read(self, stdout, answers):
        with stdout:
            for line in stdout:
                with contextlib.suppress(ValueError):
                    answers.put(json.loads(line))


class Fleet:
    """Servers and their agents, what the operator notes of them, and the evidence in the end.

    `config`: what all agents are told. `broker`: a BeanstalkdServer. `defect`: which one is planted into them.
    `distances`: of the agents from PostgreSQL, in seconds, in turn. `door`: where their proxies lead, if not to the
    server itself. `environment`: more of theirs.
    """

    def __init__(
        self,
        server,
        folder,
        *,
        names,
        config,
        broker=None,
        schema="chaos",
        defect="",
        distances=(0.0,),
        door=None,
        environment=(),
    ):
        self.server = server
        self.door = door
        self.environment = dict(environment)
        self.broker = broker
        self.folder = Path(folder)
        self.config = config | {"schema": schema}
        self.schemas = {schema: 0} | ({f"{schema}_{QUEUED}": FENCES} if broker else {})
        """With what is added to the fences of its agents."""
        self.defect = defect
        self.dsn = ""
        """Where the agents find the server; empty: each through its proxy."""
        self.members = [Member(self, name, distance) for name, distance in zip(names, cycle(distances), strict=False)]
        self.names = {}
        """Of the agents, by the numbers of their processes."""
        self.troubles = []
        self.edits = []
        self.records = []
        self.exits = 0
        self._numbers = 0
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._watch = threading.Thread(target=self._start_again, daemon=True)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for proxy in chain.from_iterable(member.proxies() for member in self.members):
                stack.enter_context(proxy)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        if self._watch.ident:
            self._watch.join(PATIENCE)
        for member in self.members:
            member.close()
        self._stack.close()

    def start(self, count, jobs):
        """Start so many agents; the first adds the jobs."""
        self.members[0].start(jobs)
        self._ask(WATCH_THE_GONE)
        for member in self.members[1:count]:
            member.start()
        self._watch.start()

    def has_joined(self, member):
        """Whether the store knows an agent of that name."""
        return (member.name,) in self._ask("SELECT name FROM {schema}.agent")

    def new_number(self):
        """Number the processes, one after another."""
        with self._lock:
            self._numbers += 1
            return self._numbers

    def log_of(self, number):
        """The file of the tasks of a process."""
        return self.folder / f"log-{number}"

    def note(self, kind, number, since, *, in_flight=False, until=None, lost=None):
        """Note what has been done to a process, from then until now, or `until` another instant."""
        with self._lock:
            self.troubles.append(Trouble(kind, number, since, until or us_now(), in_flight, lost))

    @contextlib.contextmanager
    def standby(self):
        """Let a standby follow the server for as long as the block lasts; if it was promoted meanwhile, it stays."""
        primary, standby = self.server, Standby(self.server)
        try:
            standby.start()
            standby.catch_up()
            yield standby
        finally:
            if self.server is standby:
                self._stack.callback(standby.close)
                primary.retire()
            else:
                standby.close()
                stand_alone(primary)

    def move_to(self, server):
        """Let all find that server from now on where the former one was."""
        self.server = server
        for member in self.members:
            member.proxy.lead_to(socket_of(server))

    def note_edit(self, verb, job, every, asked, *, is_done):
        """Note what a member was asked to do with a job."""
        with self._lock:
            self.edits.append(Edit(verb, job, every, asked, us_now() if is_done else None))

    def bytes_written(self):
        """How many the tasks have written so far."""
        return sum(self.log_of(number).stat().st_size for number in range(1, self._numbers + 1) if self.has(number))

    def has(self, number):
        """Whether a process has written anything."""
        return self.log_of(number).exists()

    def end(self):
        """Read what the store has recorded, and let all of them end in order: the last one looks at all once more."""
        self._is_over.set()
        self._watch.join(PATIENCE)
        self.records = self._records()
        for member in self.members:
            if member.process is not None and member.process.poll() is None:
                member.leave()

    def evidence(self, *, quiet, batch, limit, **more):
        """All that there is to judge by, once it has ended."""
        wall = time.time_ns() // 1000 - us_now()
        written = [], [], [], []
        for number in filter(self.has, range(1, self._numbers + 1)):
            for found, its in zip(written, read_log(self.log_of(number), number), strict=True):
                found.extend(its)
        begun, ended, cut_off, events = written
        quarantined = [job for (job,) in self._ask(QUARANTINED)]
        gone = [(epoch, at - wall) for epoch, at in self._ask(GONE)]
        every = round(self.config["every"] * 1e6)
        return Evidence(
            begun=begun,
            ended=ended,
            cut_off=cut_off,
            troubles=self.troubles,
            records=self.records or self._records(),
            edits=self.edits,
            gone=gone,
            quarantined=quarantined,
            events=events,
            names=self.names,
            every=every,
            limit=limit,
            batch=batch,
            quiet=quiet,
            wall=wall,
            **more,
        )

    def _records(self):
        return [Record(*row) for row in self._ask(RECORDS)]

    def _ask(self, question):
        """Ask it of each schema, once the server answers. Returns all rows of the answers."""
        rows, hands = [], []

        def is_there():
            with contextlib.suppress(psycopg.OperationalError):
                hands.append(psycopg.connect(self.server.dsn, autocommit=True))
            return bool(hands)

        wait_until(is_there)
        with hands[0] as hand:
            for schema, fences in self.schemas.items():
                answer = hand.execute(question.format(schema=schema, fences=fences, clock=self.server.clock))
                rows += answer.fetchall() if answer.description else []
        return rows

    def _start_again(self):
        """Start another agent in the place of one that has ended by itself."""
        while not self._is_over.wait(LOOKS):
            for member in self.members:
                if member.is_wanted and member.process.poll() is not None:
                    self.exits += 1
                    self.note("exit", member.number, us_now())
                    member.launch()


def socket_of(server):
    """Return the socket of a PostgreSQL."""
    return server.folder / ".s.PGSQL.5432"


def freeze(member, seconds):
    """Stop a process for so long."""
    member.signal(signal.SIGSTOP)
    time.sleep(seconds)
    with contextlib.suppress(OSError):
        member.signal(signal.SIGCONT)


def await_runs(fleet):
    """Wait until tasks have written more than now."""
    before = fleet.bytes_written()
    wait_until(lambda: fleet.bytes_written() > before)
