"""Jobs as a text, and back: `sync` takes what `export` wrote, and nothing changes."""

import pytest
from hypothesis import given, strategies as st

from kit import nothing
from scheduler import InvalidJob, JobSpec, Retry, Scheduler, export_json, export_toml, read_jobs

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
PLAIN = st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(PLAIN, lambda some: st.lists(some, max_size=3) | st.dictionaries(TEXTS, some, max_size=3))
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "args": st.lists(VALUES, max_size=3),
        "kwargs": st.dictionaries(TEXTS, VALUES, max_size=3),
        "needs": st.sampled_from(["http", {"http": 2}, ["http", "dns"]]),
        "priority": st.floats(-100, 100),
        "timeout": st.sampled_from([None, 1.5, "1m"]),
        "retry": st.sampled_from([None, Retry.exponential("1s", cap="1m", max_retries=3)]),
        "overlap": st.sampled_from(["skip", "allow", "queue"]),
        "missed": st.sampled_from(["skip", "latest", "all"]),
        "grace": st.integers(1, 100),
        "tags": st.lists(TEXTS.filter(bool), max_size=3),
        "name": st.none() | TEXTS,
        "delivery": st.sampled_from(["at_most_once", "at_least_once"]),
    },
)
SPECS = st.builds(
    lambda id, schedule, options: JobSpec(id, "nothing", schedule, owner="api", **options),
    TEXTS.filter(bool),
    st.sampled_from(["@every 90s", "0 9 * * mon-fri", "*/5 * * * *"]),
    OPTIONS,
)


def scheduler_with(specs):
    """Return a scheduler with these jobs of one owner, and some of others."""
    s = Scheduler(limits={"http": 5, "dns": 2})
    s.register("nothing", nothing)
    s.add("nothing", "@every 1h", id="of code")
    s.add("nothing", "@every 1h", id="of others", owner="cmdb")
    s.sync(specs, owner="api")
    return s


@pytest.mark.parametrize("export", [export_json, export_toml])
@given(specs=st.lists(SPECS, max_size=4, unique_by=lambda spec: spec.id))
def test_what_is_exported_is_the_same_set(export, specs):
    """Whatever the jobs hold."""
    specs = [spec for spec in specs if spec.id not in {"of code", "of others"}]
    s = scheduler_with(specs)
    read = read_jobs(export(s.jobs(), owner="api"))
    assert sorted(spec.id for spec in read) == sorted(spec.id for spec in specs)
    told = s.sync(read, owner="api", dry_run=True)
    assert (told.added, told.changed, told.removed) == ((), (), ())


def test_an_export_is_for_people():
    """Defaults and the owner are left out."""
    s = scheduler_with([JobSpec("a", "nothing", "@every 1h", timeout="10s", kwargs={"x y": [1, "ä\n"]})])
    assert export_toml(s.jobs(), owner="api").splitlines() == [
        "[[job]]",
        'id = "a"',
        'task = "nothing"',
        'schedule = "@every 1h"',
        'kwargs = {"x y" = [1, "ä\\u000a"]}',
        "timeout = 10.0",
    ]
    assert export_toml(s.jobs(), owner="nobody") == ""
    assert read_jobs("") == []


def test_toml_cannot_hold_none():
    """JSON can, and the error says so."""
    s = scheduler_with([JobSpec("a", "nothing", "@every 1h", args=[None])])
    with pytest.raises(InvalidJob, match="args of job 'a' holds None, which TOML cannot hold: use export_json"):
        export_toml(s.jobs(), owner="api")
    assert read_jobs(export_json(s.jobs(), owner="api"))[0].args == (None,)


@pytest.mark.parametrize(
    ("text", "words", "path"),
    [
        ("{", "it is not JSON as it should be", None),
        ("[[job]", "the text is not TOML as it should be", None),
        ('{"jobs": 3}', "the text must hold", None),
        ("[job]\nid = 3", "the text must hold tables", None),
        ('[[job]]\nid = "a"', r"^job\[0\]: task: a job must have one", "job[0].task"),
        ('{"jobs": [{"id": "a", "task": "b", "schedule": "x"}]}', r"^jobs\[0\]: schedule", "jobs[0].schedule"),
        ('job = [{id = "a", task = "b", schedule = "@hourly", args = [2026-01-01]}]', "args", "job[0].args[0]"),
    ],
)
def test_a_wrong_text_is_refused(text, words, path):
    """With the place of what is wrong."""
    with pytest.raises(InvalidJob, match=words) as found:
        read_jobs(text)
    assert found.value.path == path
