"""Messages are jobs: each is delivered once it can be, in its order, whatever becomes of the process."""

from datetime import UTC, datetime

import pytest
from attrs import evolve

from kit import settle
from schedule import At, Every
from scheduler import Outcome
from uptime_agent.notify import ChannelRoute, Digest, MessageRate, Rules
from uptime_agent.standing import (
    Board,
    Checked,
    CheckedAgain,
    GroupRecalled,
    NotChecked,
    Opened,
    Remembered,
    TargetStatus,
)
from uptime_agent.standing.flapping import TargetStanding, TargetState

DAY = 86_400
LATER = datetime(2100, 1, 1, tzinfo=UTC)


async def test_an_incident_is_told_when_it_begins_and_when_it_ends(world):
    """Each once, and nothing is left over."""
    async with world.process() as process:
        incident = process.opens()
        await world.clock.travel(1)
        assert world.ops.keys == ["shop-1:ops:trigger"]
        assert process.jobs == ["shop-1:ops:resolved"]
        process.closes(incident)
        await world.clock.travel(1)
        assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:resolved"]
        assert process.jobs == []
    trigger, resolved = (notification.messages[0] for notification in world.ops.taken)
    assert trigger.text == "shop is down: connection refused"
    assert resolved.text == "shop is up again, and was down for 1s; it was: connection refused"


async def test_without_a_store_the_same_jobs_live_in_memory(world):
    """As long as the process does."""
    world.ops.refuses = 2
    async with world.process(is_stored=False) as process:
        incident = process.opens()
        process.closes(incident)
        await world.clock.travel(60)
        assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:resolved"]


async def test_each_channel_of_the_route_is_told_and_no_other(world, clock):
    """A check names its channels; without that it is told to all of them; with none, to nobody."""
    world.channels = {name: type(world.ops)() for name in ("ops", "dev", "boss")}
    world.targets = {"shop": None, "blog": ("dev",), "toy": ()}
    async with world.process() as process:
        for target in world.targets:
            process.opens(target)
        await clock.travel(1)
    assert {name: channel.keys for name, channel in world.channels.items()} == {
        "ops": ["shop-1:ops:trigger"],
        "dev": ["shop-1:dev:trigger", "blog-1:dev:trigger"],
        "boss": ["shop-1:boss:trigger"],
    }


async def test_the_end_waits_for_the_beginning_to_be_delivered(world):
    """However long that takes, and however often it is tried."""
    world.ops.refuses = 5
    async with world.process() as process:
        process.closes(process.opens())
        await world.clock.travel(10)
        assert world.ops.attempts > 1
        assert world.ops.keys == []
        await world.clock.travel(600)
    assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:resolved"]
    assert world.said[0] == "channel ops: it is not well; messages are kept and tried again"


@pytest.mark.parametrize("seconds", [-301.0, 301.0])
async def test_a_clock_that_is_set_while_messages_wait_loses_none(world, seconds):
    """What is tried again, what is held for a digest, and a reminder: each goes out, though its time is another now."""
    world.rules = Rules(digest=Digest(1, 30), reminders=600)
    world.targets = {"shop": None, "blog": None}
    world.ops.refuses = 4
    async with world.process() as process:
        incidents = [process.opens(), process.opens("blog")]
        await world.clock.travel(10)
        world.clock.step(seconds)
        await world.clock.travel(60)
        assert sorted(world.ops.keys) == ["blog-1:ops:trigger", "shop-1:ops:trigger"]
        await world.clock.travel(600 + 301)
        world.ops.refuses = 1
        assert world.ops.keys.count("shop-1:ops:reminder-1") == 1
        for incident in incidents:
            process.closes(incident)
        world.clock.step(seconds)
        await world.clock.travel(60)
        assert process.jobs == []
    assert sorted(world.ops.keys[-2:]) == ["blog-1:ops:resolved", "shop-1:ops:resolved"]


async def test_the_same_incident_is_told_once_however_often_it_is_heard_of(world):
    """Also after its trigger has been delivered."""
    async with world.process() as process:
        incident = process.opens()
        process.opens()
        await world.clock.travel(5)
        process.opens()
        await world.clock.travel(5)
        process.closes(incident)
        process.closes(incident)
        await world.clock.travel(5)
    assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:resolved"]


async def test_a_trigger_that_has_expired_is_given_up_and_its_end_says_so(world):
    """Nobody was told of the beginning: the end tells of both."""
    world.rules = Rules(digest=None, expiry=3600)
    world.ops.refuses = 10_000
    async with world.process() as process:
        incident = process.opens()
        await world.clock.travel(4000)
        assert process.jobs == ["shop-1:ops:resolved"]
        world.ops.refuses = 0
        process.closes(incident)
        await world.clock.travel(1)
        records = [r for r in await process.scheduler.history() if r.job_id.endswith(":trigger")]
    assert records[0].result["delivery"] == "expired"
    assert world.ops.keys == ["shop-1:ops:resolved"]
    (notification,) = world.ops.taken
    assert notification.text.endswith("(the alarm of 2026-01-01T00:00:00.000Z could not be delivered)")
    assert notification.body()["trigger_delivered"] is False
    assert "not told ops, expired: shop is down: connection refused" in world.said


async def test_what_could_not_be_delivered_goes_out_after_a_restart(world):
    """With the same key and the same words."""
    world.ops.refuses = 10_000
    async with world.process(dies=True) as process:
        incident = process.opens()
        process.closes(incident)
        await world.clock.travel(7)
        await process.scheduler.flush()
    await world.clock.travel(1000)
    world.ops.refuses = 0
    async with world.process():
        await world.clock.travel(400)
    assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:resolved"]
    assert world.ops.taken[0].text == "shop is down: connection refused"
    assert "1 message of an earlier run not delivered yet: trying again" in world.said


async def test_what_is_due_before_the_rest_of_the_store_has_been_read_is_not_lost(world):
    """A store of many jobs is read while the first ones run: an end that was overdue was taken for settled before."""
    world.rules = Rules(digest=Digest(1, 30))
    async with world.process(dies=True) as process:
        for number in range(2_000):
            process.scheduler.add("notify", At(LATER), id=f"other-{number}", args=({},), needs="channel:none")
        incident = process.opens()
        await world.clock.travel(1)
        process.closes(incident)
        await process.scheduler.flush()
    await world.clock.travel(100)
    async with world.process() as process:
        await world.clock.travel(60)
        assert not [job for job in process.jobs if "shop" in job]
    assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:resolved"]


async def test_news_that_come_before_the_rest_of_the_store_has_been_read_are_told_once(world):
    """Whether an incident was told already stands in jobs that may not have been read."""
    async with world.process(dies=True) as process:
        incident = process.opens()
        await world.clock.travel(1)
        await process.scheduler.flush()
    other = evolve(incident, id="blog-1", target="blog")
    world.before = lambda outbox: [outbox.hear(Opened(each)) for each in (incident, other)]
    world.targets = {"shop": None, "blog": None}
    async with world.process() as process:
        await world.clock.travel(60)
        process.closes(incident)
        await world.clock.travel(60)
    assert world.ops.keys == ["shop-1:ops:trigger", "blog-1:ops:trigger", "shop-1:ops:resolved"]


async def test_an_incident_that_is_open_over_a_restart_is_resolved_after_it(world):
    """What waits in the store is all that is needed."""
    async with world.process(dies=True) as process:
        incident = process.opens()
        await world.clock.travel(5)
        await process.scheduler.flush()
    async with world.process() as process:
        process.opens()  # as the board does that cannot know whom the one before it has told
        await world.clock.travel(5)
        assert world.ops.keys == ["shop-1:ops:trigger"]
        process.closes(incident)
        await world.clock.travel(5)
    assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:resolved"]


async def test_a_process_that_dies_while_a_message_is_sent_sends_it_again_under_the_same_key(world):
    """The receiver may have it twice, and can tell."""
    world.ops.is_hung = True
    async with world.process(dies=True) as process:
        process.opens()
        await world.clock.travel(3)
        assert world.ops.attempts == 1
        await process.scheduler.flush()
    world.ops.is_hung = False
    async with world.process():
        await world.clock.travel(60)
    assert world.ops.keys == ["shop-1:ops:trigger"]


async def test_a_message_that_is_cut_off_by_a_stop_is_sent_by_the_next_process(world):
    """An orderly end loses nothing either."""
    world.ops.is_hung = True
    async with world.process() as process:
        process.opens()
        await world.clock.travel(3)
    world.ops.is_hung = False
    async with world.process():
        await world.clock.travel(1)
    assert world.ops.keys == ["shop-1:ops:trigger"]


async def test_a_message_under_which_the_process_died_three_times_is_tried_once_more(world):
    """A quarantine must not swallow an alarm."""
    world.ops.is_hung = True
    async with world.process(dies=True) as process:
        process.opens()
        await world.clock.travel(3)
        await process.scheduler.flush()
    for _ in range(3):
        async with world.process(dies=True) as process:
            await world.clock.travel(30)
            await process.scheduler.flush()
    world.ops.is_hung = False
    async with world.process():
        await world.clock.travel(300)
    assert world.ops.keys == ["shop-1:ops:trigger"]


async def test_a_channel_that_is_gone_is_recorded_and_said(world):
    """Its messages end, and those of others go on."""
    world.channels["dev"] = type(world.ops)()
    world.ops.refuses = world.channels["dev"].refuses = 10_000
    async with world.process() as process:
        process.opens()
        await world.clock.travel(3)
    del world.channels["dev"]
    world.ops.refuses = 0
    async with world.process() as process:
        await world.clock.travel(60)
        assert process.jobs == ["shop-1:ops:resolved"]
        records = {r.job_id: r for r in reversed(await process.scheduler.history())}
    assert records["notify:shop-1:dev:trigger"].result["delivery"] == "there is no such channel any more"
    assert any(said.startswith("not told dev, there is no such channel any more: shop is down") for said in world.said)
    assert world.ops.keys == ["shop-1:ops:trigger"]


async def test_the_incident_of_a_target_that_is_checked_no_more_ends(world):
    """Or a receiver would keep it open for ever."""
    async with world.process() as process:
        process.opens()
        await world.clock.travel(3)
    world.targets = {}
    async with world.process() as process:
        await world.clock.travel(3)
        assert process.jobs == []
    assert world.ops.taken[-1].text == "shop is not checked any more, and was down for 3s"


async def test_a_target_that_is_taken_out_while_it_is_down_is_not_said_to_be_up(world):
    """Nobody knows how it is: that would be a false all-clear."""
    async with world.process() as process:
        target = TargetStatus("shop", "http://shop.example", "http", incident=process.opens())
        await world.clock.travel(3)
        board = Board([target])
        board.subscribe(process.outbox.hear)
        board.forget("shop", world.clock.wall())
        await world.clock.travel(3)
        assert process.jobs == []
    resolved = world.ops.taken[-1]
    assert resolved.text == "shop is not checked any more, and was down for 3s"
    assert (resolved.kind, resolved.body()["status"], resolved.subject) == ("resolved", "removed", "removed: shop")


async def test_what_an_earlier_process_could_not_ask_for_is_made_good_for(world):
    """How a target stands counts, and not which news were heard: it ended when it stood as up, not with the first check
    that was up, after which it may have flapped.
    """
    async with world.process() as process:
        incident = process.opens()
        await world.clock.travel(3)
    world.targets["blog"] = None
    async with world.process() as process:
        blog = TargetStatus("blog", "http://blog.example", "http")
        blog.incident = evolve(incident, id="blog-7", target="blog")
        process.outbox.hear(Remembered(blog))
        shop = TargetStatus("shop", "http://shop.example", "http", since=incident.began + 1)
        shop.state = TargetState(id="shop-2", number=2, started_at=incident.began + 2, status=TargetStanding.UP)
        process.outbox.hear(Remembered(shop))
        await world.clock.travel(3)
    assert world.ops.keys == ["shop-1:ops:trigger", "blog-7:ops:trigger", "shop-1:ops:resolved"]
    assert world.ops.taken[-1].messages[0].ended == incident.began + 2


async def test_what_an_earlier_process_could_not_ask_for_of_a_group_is_made_good_for(world):
    """A group is no target: how it stood is told once the past of its members is known."""
    world.targets = {"site": None}
    async with world.process(dies=True) as process:
        incident = process.opens("site", is_group=True)
        await world.clock.travel(5)
        await process.scheduler.flush()
    async with world.process() as process:
        process.outbox.hear(GroupRecalled("site", incident, incident.began))
        await world.clock.travel(5)
        assert world.ops.keys == ["site-1:ops:trigger"]
        process.outbox.hear(GroupRecalled("site", None, incident.began + 2))
        await world.clock.travel(5)
    assert world.ops.keys == ["site-1:ops:trigger", "site-1:ops:resolved"]
    assert world.ops.taken[-1].messages[0].ended == incident.began + 2


async def test_a_new_channel_hears_of_a_group_that_is_down(world):
    """As soon as it is told how the group stands."""
    world.targets = {"site": None}
    async with world.process() as process:
        incident = process.opens("site", is_group=True)
        await world.clock.travel(5)
        world.channels["dev"] = type(world.ops)()
        process.outbox.follow(world.channels, world.targets, world.rules)
        process.delivery.follow({name: ChannelRoute(channel=channel) for name, channel in world.channels.items()})
        process.outbox.hear(GroupRecalled("site", incident, incident.began))
        await world.clock.travel(5)
    assert world.channels["dev"].keys == ["site-1:dev:trigger"]
    assert world.ops.keys == ["site-1:ops:trigger"]


async def test_reminders_come_as_long_as_the_incident_is_open(world):
    """Counted from its beginning and, after that, from the last of them."""
    world.rules = Rules(digest=None, reminders=600)
    async with world.process() as process:
        incident = process.opens()
        await world.clock.travel(1250)
        assert world.ops.kinds == ["trigger", "reminder", "reminder"]
        process.closes(incident)
        await world.clock.travel(3000)
        assert process.jobs == []
    assert world.ops.keys[-2:] == ["shop-1:ops:reminder-2", "shop-1:ops:resolved"]
    assert world.ops.taken[2].text.startswith("shop is still down, for 20m")


async def test_a_reminder_of_what_could_not_be_told_is_needless(world):
    """The trigger is still tried, and says the same."""
    world.rules = Rules(digest=None, reminders=600)
    world.ops.refuses = 10_000
    async with world.process() as process:
        process.opens()
        await world.clock.travel(1300)
        world.ops.refuses = 0
        await world.clock.travel(1000)
    assert world.ops.kinds[0] == "trigger"
    assert world.ops.keys.count("shop-1:ops:trigger") == 1
    assert world.ops.keys[1:] == ["shop-1:ops:reminder-3"]


async def test_a_reminder_says_that_its_target_flaps_by_now(world):
    """An incident that began as an outage, and whose target then changed with every check, was "still down"."""
    world.rules = Rules(digest=None, reminders=600)
    async with world.process() as process:
        shop = TargetStatus("shop", "http://shop.example", "http", incident=process.opens())
        await world.clock.travel(10)
        shop.incident = evolve(shop.incident, status="flapping")
        process.outbox.hear(Checked(shop, is_change=True))
        await world.clock.travel(600)
        process.closes(shop.incident)
        await world.clock.travel(10)
    trigger, reminder, resolved = world.ops.taken
    assert trigger.text == "shop is down: connection refused"
    assert reminder.text == "shop has changed between up and down for 10m00s: connection refused"
    assert resolved.text.startswith("shop is up again, and changed between up and down for 10m")


@pytest.mark.parametrize("how", ["told", "in the store"])
async def test_nobody_is_reminded_of_a_target_that_is_paused(world, how):
    """Nobody checks it, so nobody knows whether it is still down. After the pause reminders go on."""
    world.rules = Rules(digest=None, reminders=600)
    async with world.process() as process:
        process.opens()
        job = process.scheduler.add(print, Every("1d"), id="shop", durable=False)
        if how == "told":
            process.outbox.hear(NotChecked("shop", "maintenance: deploy"))
        else:
            job.pause("deploy")
        await world.clock.travel(1300)
        assert world.ops.kinds == ["trigger"]
        process.outbox.hear(CheckedAgain("shop"))
        job.resume()
        await world.clock.travel(600)
    assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:reminder-3"]


async def test_an_incident_that_begins_while_a_stop_waits_is_told_by_the_next_process(world, caplog):
    """A scheduler that has been told to stop takes no job: there was a traceback for each channel."""
    async with world.process() as process:
        process.scheduler.stop(grace=5)
        incident = process.opens()
    assert caplog.records == []
    async with world.process() as process:
        process.outbox.hear(Remembered(TargetStatus("shop", "http://shop.example", "http", incident=incident)))
        await world.clock.travel(3)
    assert world.ops.keys == ["shop-1:ops:trigger"]


async def test_reminders_go_on_after_a_stop_that_came_while_one_was_sent(world):
    """The job of the next one could not be made any more: there was none, and the one before was sent once more."""
    world.rules = Rules(digest=None, reminders=600)
    world.ops.before_answer = lambda: world.ops.kinds[-1:] == ["reminder"] and process.scheduler.stop(grace=5)
    async with world.process() as process:
        incident = process.opens()
        await world.clock.travel(601)
    world.ops.before_answer = None
    async with world.process() as process:
        process.outbox.hear(Remembered(TargetStatus("shop", "http://shop.example", "http", incident=incident)))
        await world.clock.travel(1300)
        assert len(process.jobs) == 2
    assert world.ops.keys == ["shop-1:ops:trigger", *(f"shop-1:ops:reminder-{number}" for number in (1, 2, 3))]


async def test_more_than_so_many_go_in_a_digest(world):
    """The first ones at once, the rest together, and the ends of all together as well."""
    world.rules = Rules(digest=Digest(3, 30))
    world.targets = {f"t{number}": None for number in range(20)}
    async with world.process() as process:
        incidents = [process.opens(target) for target in world.targets]
        await world.clock.travel(5)
        assert world.ops.kinds == ["trigger"] * 3
        await world.clock.travel(40)
        assert world.ops.kinds == [*["trigger"] * 3, "digest"]
        assert len(world.ops.taken[-1].messages) == 17
        await world.clock.travel(100)
        for incident in incidents:
            process.closes(incident)
        await world.clock.travel(100)
        assert process.jobs == []
    assert world.ops.kinds == [*["trigger"] * 3, "digest", *["resolved"] * 3, "digest"]
    assert len(set(world.ops.keys)) == len(world.ops.keys) == 40


async def test_what_has_gathered_while_a_channel_was_down_goes_in_a_digest(world):
    """One delivery says that it works again, and the rest follows at once."""
    world.rules = Rules(digest=Digest(3, 10))
    world.targets = {f"t{number}": None for number in range(8)}
    world.ops.refuses = 10_000
    async with world.process() as process:
        for target in world.targets:
            process.opens(target)
            await world.clock.travel(60)
        world.ops.refuses = 0
        await world.clock.travel(300)
        assert world.ops.kinds == ["digest"]
        assert sorted(world.ops.keys) == sorted(f"{target}-1:ops:trigger" for target in world.targets)
        records = await process.scheduler.history(limit=1000)
    settled = [r for r in records if r.outcome is Outcome.SUCCEEDED]
    assert len(settled) == 8
    assert {r.result["delivery"] for r in settled} == {"delivered"}
    assert sum("in" in r.result for r in settled) == 7


async def test_a_channel_gets_no_more_than_its_rate(world):
    """What is too much waits for its turn, and holds nothing meanwhile."""
    world.ways = {"ops": ChannelRoute(channel=world.ops, rate=MessageRate(2, 60.0))}
    world.targets = {f"t{number}": None for number in range(5)}
    taken = []
    world.ops.before_answer = lambda: taken.append(round(world.clock.monotonic()))
    async with world.process() as process:
        began = round(world.clock.monotonic())
        for target in world.targets:
            process.opens(target)
        await world.clock.travel(200)
    assert [instant - began for instant in taken] == [0, 0, 60, 60, 120]


async def test_of_a_message_that_is_discarded_while_it_waits_for_its_turn_nothing_is_left(world):
    """A reminder whose incident ends, an alarm that expires: there may be many, for as long as the agent runs."""
    world.ways = {"ops": ChannelRoute(channel=world.ops, rate=MessageRate(1, 3_600.0))}
    world.rules = Rules(digest=None, reminders=60.0, expiry=600.0)
    async with world.process() as process:
        incidents = [process.opens(number=number) for number in range(3)]
        await world.clock.travel(120)
        for incident in incidents:
            process.closes(incident)
        await world.clock.travel(86_400)
        assert process.jobs == []
        keeps = [each for each in vars(process.delivery).values() if isinstance(each, dict)]
        assert [key for each in keeps for key in each if key != "ops"] == []


async def test_a_channel_that_hangs_keeps_no_other_waiting(world):
    """Each has a limit of its own."""
    slow = world.channels["slow"] = type(world.ops)()
    slow.is_hung = True
    async with world.process() as process:
        for number in range(5):
            process.opens(number=number)
        await world.clock.travel(1)
        assert slow.attempts == 1
        assert len([key for key in world.ops.keys if key.endswith("trigger")]) == 5


async def test_an_end_that_somebody_starts_by_hand_is_not_sent_before_its_time(world):
    """As with `--once`, which starts every job, whatever its schedule says."""
    async with world.process() as process:
        incident = process.opens()
        await world.clock.travel(1)
        ended = await process.scheduler.get("notify:shop-1:ops:resolved").run_now()
        assert ended.result["delivery"] == "waits for its turn"
        assert process.jobs == ["shop-1:ops:resolved"]
        process.closes(incident)
        await world.clock.travel(1)
    assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:resolved"]


async def test_a_row_that_holds_no_message_is_said_and_hurts_no_other(world):
    """Others may write into the store."""
    async with world.process() as process:
        process.scheduler.add("notify", "@every 1h", id="notify:x", args=({"a": 1},), tags=("notify",))
        incident = process.opens()
        await world.clock.travel(1)
    async with world.process() as process:
        await settle()
        process.closes(incident)
        await world.clock.travel(1)
    assert "notify:x holds no message and is not sent: expected a message of version 1" in world.said
    assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:resolved"]


async def test_a_new_configuration_is_followed_while_messages_wait(world):
    """A channel that is new hears of what is open; one that is gone, of nothing; a target that is gone is resolved."""
    dev = type(world.ops)()
    world.targets = {"shop": None, "blog": None}
    async with world.process() as process:
        shop = process.opens()
        process.opens("blog")
        await world.clock.travel(3)
        assert world.ops.keys == ["shop-1:ops:trigger", "blog-1:ops:trigger"]
        world.channels = {"dev": dev}
        process.delivery.follow({"dev": ChannelRoute(channel=dev)})
        process.outbox.follow({"dev": dev}, {"shop": None}, Rules(digest=None))
        standing = TargetStatus("shop", "http://shop.example", "http")
        standing.incident = shop
        process.outbox.hear(Remembered(standing))
        await world.clock.travel(3)
        assert dev.keys == ["shop-1:dev:trigger"]
        assert process.jobs == ["shop-1:dev:resolved"]
    assert world.ops.keys == ["shop-1:ops:trigger", "blog-1:ops:trigger"]
    assert any(said.startswith("not told ops, there is no such channel any more") for said in world.said)
