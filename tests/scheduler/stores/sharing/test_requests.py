"""Requests of agents that share a store, as rows: each stands until it is done, once, and is told how it ended."""

import anyio

from scheduler import Scheduler
from scheduler.stores import (
    MOST_REQUESTS,
    Act,
    Answer,
    Batch,
    RequestDone,
    StoredJob,
    StoredRequest,
    StoredState,
    StoredTick,
    shard_of,
)

JOB = StoredJob("a", "task", "@every 1m")


def asked(store, count=1, **fields):
    return StoredRequest(**({"number": (store.epoch << 32) + count, "job_id": "a", "act": Act.RUN.value} | fields))


def added(row=JOB, **parts):
    return Batch(jobs={row.id: row}, added={row.id: "error"}, **parts)


def test_a_request_stands_until_it_is_done(agent):
    """For the owner of the job's shard, and for no other."""
    one, two = agent(), agent()
    two.sharing.claim([shard_of("a")])
    one.commit(Batch(jobs={"a": JOB}, requests=[asked(one)]))
    assert two.changes().requests == (asked(one),)
    assert two.changes().requests == (asked(one),)
    assert one.changes().requests == ()
    two.commit(Batch(done=[RequestDone(asked(one).number, "a", 5)]))
    assert two.changes().requests == ()


def test_a_request_goes_with_the_shard(agent):
    """The next owner finds it."""
    one, two, three = agent(), agent(), agent()
    two.sharing.claim([shard_of("a")])
    one.commit(Batch(jobs={"a": JOB}, requests=[asked(one)]))
    two.sharing.hand_on([shard_of("a")], three.epoch)
    assert two.changes().requests == ()
    assert three.changes().requests == (asked(one),)


def test_requests_are_told_page_by_page_and_those_that_are_being_carried_out_are_left_out(agent):
    """A thousand that could not be carried out yet hid all that came after them."""
    store = agent()
    store.sharing.claim([shard_of("a")])
    store.commit(added())
    every = [asked(store, count) for count in range(1, MOST_REQUESTS * 2 + 3)]
    for request in every[:2], every[2:]:
        store.commit(Batch(requests=request))
    numbers = [request.number for request in every]

    def told():
        return [request.number for request in store.changes().requests]

    for _ in range(2):  # the first page comes again after the last one
        pages = [told() for _ in range(3)]
        assert pages[0][:2] == numbers[:2]
        assert sorted(number for page in pages for number in page) == numbers
        assert [*map(len, pages)] == [MOST_REQUESTS, MOST_REQUESTS, 2]
    store.sharing.begun = numbers[:-1]
    assert told() == numbers[-1:]


async def test_a_request_behind_a_thousand_that_wait_is_carried_out(fleet):
    """Of requests the oldest thousand were read each time. They waited for room, and no other was ever seen."""
    s = Scheduler(store=fleet.store("one"), poll="50ms", limits={"api": 1})
    s.register("work", fleet.works_on("one"))
    s.register("wait", anyio.sleep_forever)
    async with s:
        await s.flush()
        waiting = "INSERT INTO job (id, task, schedule, options) SELECT n::text, 'wait', '@every 1d', %s"
        fleet.execute(f"{waiting} FROM generate_series(1, 1100) n", '{"needs": "api"}')
        fleet.execute("INSERT INTO job (id, task, schedule) VALUES ('quick', 'work', '@every 1d')")
        asking = "INSERT INTO request (number, job_id, act) SELECT n, n::text, 'run'"
        fleet.execute(f"{asking} FROM generate_series(1, 1100) n")
        fleet.execute("INSERT INTO request (number, job_id, act) VALUES (2000, 'quick', 'run')")
        await fleet.all_run(["quick"], since=0)
        s.stop(grace=0)


def test_a_batch_that_comes_twice_asks_once(agent):
    """Its answer was lost; meanwhile the request was done."""
    one, two = agent(), agent()
    two.sharing.claim([shard_of("a")])
    batch = Batch(jobs={"a": JOB}, requests=[asked(one)])
    one.commit(batch)
    two.commit(Batch(done=[RequestDone(asked(one).number, "a", 5)]))
    one.commit(batch)
    assert two.changes().requests == ()


def test_of_two_rows_that_are_added_at_once_the_first_stays(agent):
    """Nothing that came with the second is done, neither its first state nor its requests."""
    one, two = agent(), agent()
    one.sharing.claim(range(1_024))
    mine, theirs = JOB, JOB._replace(schedule="@every 2m")
    assert one.commit(added(mine)).standing == ()
    begun = {"a": StoredState("a", next_us=5)}
    assert two.commit(added(theirs, begun=begun, requests=[asked(two)])).standing == (mine,)
    [[(row, state)]] = one.sharing.load([shard_of("a")])
    assert (row, state) == (mine, None)
    assert one.changes().requests == ()


def test_a_row_that_is_added_twice_by_one_stands_by_itself(agent):
    """Its commit came twice. It is the first, with its state and its requests."""
    one = agent()
    one.sharing.claim(range(1_024))
    batch = added(begun={"a": StoredState("a", next_us=5)}, requests=[asked(one)])
    assert one.commit(batch).standing == ()
    one.commit(Batch(states={"a": StoredState("a", next_us=7)}, done=[RequestDone(asked(one).number, "a", 5)]))
    assert one.commit(batch).standing == ()
    [[(_, state)]] = one.sharing.load([shard_of("a")])
    assert state.next_us == 7
    assert one.changes().requests == ()


def test_a_row_is_put_beside_its_pause(agent):
    """Another agent may have paused the job: what is put leaves that alone."""
    one, two = agent(), agent()
    one.commit(Batch(jobs={"a": JOB._replace(paused="by one")}))
    two.commit(Batch(jobs={"a": JOB._replace(name="new")}))
    [[(row, _)]] = one.sharing.load([shard_of("a")])
    assert (row.name, row.paused) == ("new", "by one")


def test_what_has_become_of_a_request_is_told_from_the_tick(agent):
    """While it runs, when it has ended, and when it will be tried again."""
    one, two = agent(), agent()
    number, fence = asked(one).number, two.epoch << 32
    one.commit(Batch(jobs={"a": JOB}, requests=[asked(one)]))
    assert one.sharing.answers([number]) == [Answer(number)]
    mark = StoredTick("a", 5, 1, fence, "running")
    two.commit(Batch(marks=[mark], done=[RequestDone(number, "a", 5)]))
    assert one.sharing.answers([number]) == [Answer(number, is_done=True, due_us=5, tick=mark)]
    end = mark._replace(outcome="failed")
    again = StoredState("a", retry_due_us=5, retry_attempt=2, retry_at_us=9)
    two.commit(Batch(ended=[end], states={"a": again}))
    assert one.sharing.answers([number]) == [Answer(number, is_done=True, due_us=5, tick=end, comes_again=True)]
    two.commit(Batch(states={"a": StoredState("a")}))
    assert one.sharing.answers([number]) == [Answer(number, is_done=True, due_us=5, tick=end)]


def test_a_request_for_a_job_that_is_gone_is_told_so(agent):
    """So is one that nobody has heard of."""
    one, two = agent(), agent()
    two.sharing.claim(range(1_024))
    one.commit(Batch(jobs={"a": JOB}, requests=[asked(one)]))
    one.commit(Batch(jobs={"a": None}))
    assert two.changes().requests == ()
    assert [answer.is_gone for answer in one.sharing.answers([asked(one).number, 7])] == [True, True]
