"""Random definitions of jobs, and a scheduler that takes them."""

from hypothesis import strategies as st

from schedule import Missed
from scheduler import Delivery, JobSpec, Overlap, Retry, Scheduler

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
PRINTABLE = TEXTS.filter(str.isprintable)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
DELAYS = st.floats(0.001, 10_000) | st.sampled_from(["5s", "1m30s"])
RETRIES = st.builds(
    Retry.exponential, DELAYS, cap=st.none() | DELAYS, max_retries=st.none() | st.integers(0, 9), jitter=st.floats(0, 1)
) | st.builds(Retry.timescaledb, DELAYS)
SCHEDULES = st.sampled_from(
    ["@every 10s", "@every 60s", "@after 5m", "*/5 * * * *", "CRON_TZ=Europe/Berlin 0 9 * * *", "@daily", 30, 0.5]
)


OWNERS = st.none() | PRINTABLE


@st.composite
def specs(draw, ids=PRINTABLE, owners=OWNERS):
    """Make a spec with any options that go together."""
    options = {
        "args": st.lists(JSON, max_size=2),
        "kwargs": st.dictionaries(TEXTS, JSON, max_size=2),
        "needs": st.dictionaries(PRINTABLE, st.integers(1, 5), max_size=2),
        "priority": st.integers(-9, 9) | st.floats(-9, 9),
        "timeout": st.none() | DELAYS,
        "retry": st.none() | RETRIES,
        "overlap": st.sampled_from(Overlap),
        "max_running": st.none() | st.integers(1, 20),
        "missed": st.sampled_from([Missed.LATEST, Missed.SKIP]),
        "grace": DELAYS,
        "catch_up": st.integers(1, 200),
        "delivery": st.sampled_from(Delivery),
        "place": st.none() | PRINTABLE,
        "inline": st.booleans(),
        "tags": st.lists(TEXTS, max_size=3),
        "name": st.none() | TEXTS,
        "owner": owners,
    }
    chosen = draw(st.fixed_dictionaries({}, optional=options))
    return JobSpec(draw(ids), "probe", draw(SCHEDULES), **chosen)


async def probe(*args, **kwargs):
    """Do nothing: only the definition matters."""


def scheduler():
    """Make a scheduler that knows the task."""
    s = Scheduler(limits={"http": 10})
    s.register("probe", probe)
    return s
