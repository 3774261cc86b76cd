"""Jobs as rows: what is written reads back as the same, and what people write is read strictly."""

import enum
import json
from collections import OrderedDict, namedtuple
from datetime import UTC, datetime

import pytest
from attrs import evolve, frozen
from hypothesis import example, given, strategies as st

from schedule import After, At, Calendar, Cron, Every, Missed, Schedule, Window
from schedule._common.instant import LONGEST_DURATION
from scheduler import Delivery, InvalidJob, MalformedJob, Overlap, Retry, Scheduler
from scheduler._jobs.call import awaited, on_the_loop
from scheduler._jobs.definition import Definition
from scheduler._journal.definition import NOT_PAUSED, Columns, columns_of, stored_job
from scheduler._shape.options import policy_of
from scheduler._values.policy import Policy
from scheduler._values.retry import Growth
from scheduler.stores import JobPause, StoredJob

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLAIN = Columns(Every("10s"), (), {}, Policy(), False, frozenset(), None)


def row_of(columns, id="web", task="probe", pause=NOT_PAUSED):
    """Write as a row what its columns are to say."""
    call = on_the_loop if columns.inline else awaited
    definition = Definition(print, call, columns.args, columns.kwargs, columns.policy, columns.tags, columns.name)
    return stored_job(id, task, columns.schedule, definition, pause)


def row(**columns):
    """Make a row as a human writes it."""
    return StoredJob(**{"id": "web", "task": "probe", "schedule": "@every 10s"} | columns)


def read(stored):
    """Read a row: what it says, or why it cannot be read."""
    try:
        return columns_of(stored), ""
    except MalformedJob as exc:
        return None, str(exc)


def test_a_job_without_options_is_a_short_row():
    """Only what differs from the defaults is said."""
    assert row_of(PLAIN) == row()
    assert columns_of(row()) == PLAIN


def test_a_job_with_everything():
    """What stands in the table, for people to read."""
    retry = Retry.exponential("1s", max_retries=3)
    options = {
        "needs": ["mail", "db"], "priority": 2, "timeout": "1m", "retry": retry, "overlap": Overlap.QUEUE,
        "missed": Missed.ALL, "catch_up": 5, "grace": 3, "delivery": "at_least_once",
    }  # fmt: skip
    definition = Columns(
        Cron("0 9 * * *", tz="Europe/Berlin"),
        ("https://example.org", {"ok": [200, 204]}),
        {"verify": True, "body": None},
        policy_of(options),
        True,
        frozenset(("web", "öffentlich")),
        "Nightly",
    )
    found = row_of(definition, "site/1", "http.check", JobPause("new disks", 1_772_366_400_000_000))
    assert found._replace(options="") == StoredJob(
        "site/1",
        "http.check",
        "CRON_TZ=Europe/Berlin 0 9 * * *",
        '["https://example.org",{"ok":[200,204]}]',
        '{"body":null,"verify":true}',
        "",
        '["web","öffentlich"]',
        "Nightly",
        "new disks",
        1_772_366_400_000_000,
    )
    assert json.loads(found.options) == {
        "catch_up": 5,
        "delivery": "at_least_once",
        "grace": 3.0,
        "inline": True,
        "missed": "all",
        "needs": ["db", "mail"],
        "overlap": "queue",
        "priority": 2,
        "retry": {"growth": "exponential", "base": 1.0, "cap": 300.0, "max_retries": 3, "jitter": 0.5},
        "timeout": 60.0,
    }
    assert list(json.loads(found.options)) == sorted(json.loads(found.options))
    assert columns_of(found) == definition


@pytest.mark.parametrize("delivery", ["at_least_once", Delivery.AT_LEAST_ONCE])
def test_delivery_is_an_option_like_any_other(delivery):
    """Of add and of update, as a text or as a Delivery; at most once is what happens unless told otherwise."""
    scheduler = Scheduler()
    assert scheduler.add(print, "@every 10s").policy.delivery is Delivery.AT_MOST_ONCE
    assert scheduler.add(print, "@every 10s", delivery=delivery).policy.delivery is Delivery.AT_LEAST_ONCE
    assert policy_of({"delivery": delivery}).delivery is Delivery.AT_LEAST_ONCE
    for wrong in ("once", None, ["at_least_once"]):
        with pytest.raises(InvalidJob, match="delivery must be"):
            scheduler.add(print, "@every 10s", delivery=wrong)


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ('{"timeout": "1m30s"}', {"timeout": 90}),
        ('{"timeout": null, "max_running": null}', {}),
        (' { "grace" : "500ms", "missed": "skip" } ', {"grace": 0.5, "missed": Missed.SKIP}),
        ('{"needs": "db"}', {"needs": "db"}),
        ('{"needs": ["db", "mail"]}', {"needs": ("mail", "db")}),
        ('{"needs": {"db": 2, "mail": 1}}', {"needs": {"db": 2, "mail": 1}}),
        ('{"overlap": "allow"}', {"overlap": Overlap.ALLOW, "max_running": 10}),
        ('{"overlap": "allow", "max_running": 1}', {"overlap": Overlap.ALLOW, "max_running": 1}),
        ('{"delivery": "at_least_once"}', {"delivery": Delivery.AT_LEAST_ONCE}),
        ('{"retry": {"growth": "constant", "base": "5s"}}', {"retry": Retry.constant("5s")}),
        ('{"retry": {"growth": "linear", "base": 5, "cap": "1m"}}', {"retry": Retry.linear(5, cap="1m")}),
        (
            (
                '{"retry": {"growth": "exponential", "base": 1.0, "cap": 300.0, "max_retries": 3, "jitter": 0.5, '
                '"past_next_start": false}}'
            ),
            {"retry": Retry.exponential("1s", max_retries=3)},
        ),
        ('{"retry": null}', {}),
    ],
)
def test_options_as_people_write_them(written, options):
    """Lengths as text, needs in any form, and only what matters."""
    assert columns_of(row(options=written)).policy == policy_of(options)


class Colour(enum.IntEnum):
    """A number that is more than a number."""

    RED = 1


Point = namedtuple("Point", "x y")  # noqa: PYI024 - what users have
knot = []
knot.append(knot)
deep = ()
for _ in range(200):
    deep = (deep,)


@pytest.mark.parametrize(
    ("args", "place"),
    [
        (({"a", "b"},), r"args\[0\] is a set"),
        ((1, {"x": b"bytes"}), r'args\[1\]\["x"\] is a bytes'),
        (([], [[float("nan")]]), r"args\[1\]\[0\]\[0\] must be a finite number, not nan"),
        ((float("-inf"),), r"args\[0\] must be a finite number"),
        (({1: "x"},), r"args\[0\] has a key that is a int"),
        (({"x": {None: 1}},), r'args\[0\]\["x"\] has a key that is a NoneType'),
        ((object(),), r"args\[0\] is a object"),
        ((NOON,), r"args\[0\] is a datetime"),
        ((Colour.RED,), r"args\[0\] is a Colour"),
        ((Point(1, 2),), r"args\[0\] is a Point"),
        ((OrderedDict(a=1),), r"args\[0\] is a OrderedDict"),
        (("\ud800",), r"args\[0\] must be Unicode text"),
        (("a\0b",), r"args\[0\] must be Unicode text without NUL"),
        (({"\udfff": 1},), r"a key of args\[0\] must be Unicode text"),
        ((10**5_000,), r"args\[0\] is a number of \d+ bits"),
        ((knot,), r"args\[0\]\[0\].* holds too much"),
        (deep, r"args\[0\]\[0\].* holds too much"),
        (("x" * 2**20,), r"at most 1048576 can be stored"),
        ([0] * 2**21, r"args holds too much"),
    ],
    ids=[f"case-{number}" for number in range(19)],
)
def test_what_json_cannot_give_back_is_refused_with_its_place(args, place):
    """When the job is added, not when it runs after a restart with something else."""
    with pytest.raises(InvalidJob, match=place):
        row_of(evolve(PLAIN, args=args))
    with pytest.raises(InvalidJob, match=place.replace("args", 'kwargs\\["it"\\]')):
        row_of(evolve(PLAIN, kwargs={"it": args}))


def test_an_object_that_holds_itself_many_times_over_is_refused():
    """Written out it would fill the disk: a list of two lists of two lists..."""
    tree = []
    for _ in range(60):
        tree = [tree, tree]
    with pytest.raises(InvalidJob, match="holds too much"):
        row_of(evolve(PLAIN, args=(tree,)))


def test_tuples_become_lists():
    """JSON has one kind of list; nothing else changes."""
    found = columns_of(row_of(evolve(PLAIN, args=((1, (2, "x")), [True, 1.0, None]))))
    assert found.args == ([1, [2, "x"]], [True, 1.0, None])
    assert [type(item) for item in found.args[1]] == [bool, float, type(None)]


def test_arguments_of_two_rows_are_two_objects():
    """What a run does to its list, another job must not see."""
    one, two = (columns_of(row(id=id, args="[[]]")) for id in "ab")
    one.args[0].append(1)
    assert two.args == ([],)


@frozen
class Moon(Schedule):
    """A schedule of a user's own class."""

    def next(self, after):
        return NOON


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": Moon()}, r"schedule: Moon.* has no text"),
        ({"schedule": Every("1h") | Moon()}, r"schedule: Moon.* has no text"),
        ({"schedule": Every("1h", jitter="1m", key="other")}, r"schedule: .*cannot be told in text"),
        ({"tags": frozenset(["a\0"])}, r"tags\[0\] must be Unicode text"),
        ({"name": "\ud800"}, r"name must be Unicode text"),
        ({"policy": policy_of({"needs": "\ud800"})}, r'options\["needs"\]\[0\] must be Unicode text'),
    ],
)
def test_other_things_that_cannot_be_stored(changes, message):
    """Each is named."""
    with pytest.raises(InvalidJob, match=message):
        row_of(evolve(PLAIN, **changes))


@pytest.mark.parametrize("id", ["", "a\n", "\0", "x" * 513, "\ud800", "a\u202eb", None, 5])
def test_an_id_is_a_line_of_up_to_512_characters(id):
    """It stands in logs, tables and addresses. Both ways."""
    with pytest.raises(InvalidJob, match="id must be 1 to 512 printable characters"):
        row_of(PLAIN, id)
    with pytest.raises(MalformedJob, match=r"id .*: (it must be text|id must be 1 to 512)"):
        columns_of(row(id=id))


def test_a_bound_schedule_is_stored_as_it_was_before():
    """The phase comes from the id again, so ten thousand rows share one text."""
    for schedule in (Every("10s", jitter="1s"), Every("10s") | Every("7s")):
        assert row_of(evolve(PLAIN, schedule=schedule.bind("web"))) == row_of(evolve(PLAIN, schedule=schedule))
    bound = Every("10s", anchor=NOON, jitter="1s").bind("web")
    assert columns_of(row_of(evolve(PLAIN, schedule=bound))).schedule.bind("web") == bound


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"schedule": "@evry 10s"}, r"schedule '@evry 10s': .*did you mean '@every 10s'"),
        ({"schedule": None}, r"schedule None: it must be text"),
        ({"task": 5}, r"task 5: it must be text"),
        ({"args": "{}"}, r"args '{}': it must be a JSON array"),
        ({"args": "[1,]"}, r"args '\[1,\]': it is not JSON"),
        ({"args": ""}, r"args '': it is not JSON"),
        ({"args": b"[]"}, r"args b'\[\]': it must be text"),
        ({"args": "[NaN]"}, r"NaN is no number"),
        ({"args": "[-Infinity]"}, r"-Infinity is no number"),
        ({"args": "[1e999]"}, r"1e999 is no number"),
        ({"args": '["\\ud800"]'}, r"value\[0\] must be Unicode"),
        ({"args": '["\\u0000"]'}, r"value\[0\] must be Unicode"),
        ({"args": '["\ud800"]'}, r"value\[0\] must be Unicode"),
        ({"args": "[" + "1" * 5_000 + "]"}, r"it is not JSON"),
        ({"args": "[" * 100_000 + "]" * 100_000}, r"holds too much: at most 100 levels"),
        ({"args": "[" * 200 + "]" * 200}, r"holds too much"),
        ({"args": "[]" + " " * 2**20}, r"id 'web': .* at most 1048576"),
        ({"kwargs": "[]"}, r"kwargs '\[\]': it must be a JSON object"),
        ({"kwargs": '{"a": 1, "a": 2}'}, r"the key 'a' comes twice"),
        ({"kwargs": '{"a": ' * 50_000 + "1" + "}" * 50_000}, r"holds too much: at most 100 levels"),
        ({"options": "[]"}, r"options '\[\]': it must be a JSON object"),
        ({"options": "null"}, r"options 'null': it must be a JSON object"),
        ({"options": '{"timout": 5}'}, r"no option 'timout': did you mean 'timeout'\?"),
        ({"options": '{"xyz": 5}'}, r"no option 'xyz': there are agents, apart, catch_up, delivery"),
        ({"options": '{"timeout": "5 parsecs"}'}, r"timeout: cannot read the duration"),
        ({"options": '{"timeout": -1}'}, r"timeout: .*negative"),
        ({"options": '{"timeout": true}'}, r"timeout: "),
        ({"options": '{"timeout": 1' + "0" * 400 + "}"}, r"timeout: .*too long"),
        ({"options": '{"priority": "high"}'}, r"priority must be a finite number"),
        ({"options": '{"priority": 1' + "0" * 400 + "}"}, r"priority must be a finite number"),
        ({"options": '{"overlap": "skipp"}'}, r"overlap must be one of 'skip', .*not 'skipp'"),
        ({"options": '{"overlap": ["skip"]}'}, r"overlap must be one of"),
        ({"options": '{"missed": null}'}, r"missed must be one of"),
        ({"options": '{"delivery": "once"}'}, r"delivery must be one of 'at_most_once', 'at_least_once'"),
        ({"options": '{"overlap": "replace", "missed": "all"}'}, r"choose one"),
        ({"options": '{"max_running": 1.5}'}, r"max_running must be a whole number"),
        ({"options": '{"needs": 5}'}, r"needs must be a text, an array"),
        ({"options": '{"needs": [["db", 1]]}'}, r"needs: "),
        ({"options": '{"needs": {"db": 0}}'}, r"needs: "),
        ({"options": '{"inline": 1}'}, r"inline must be true or false, not 1"),
        ({"options": '{"retry": 3}'}, r"retry must be an object"),
        ({"options": '{"retry": {}}'}, r"retry must also say 'growth'"),
        ({"options": '{"retry": {"growth": "constant"}}'}, r"retry must also say 'base'"),
        ({"options": '{"retry": {"growth": "cubic", "base": 1}}'}, r"retry.growth must be one of 'constant'"),
        ({"options": '{"retry": {"growth": "constant", "base": 0}}'}, r"retry: .*longer than nothing"),
        ({"options": '{"retry": {"growth": "constant", "base": true}}'}, r"retry.base must be"),
        ({"options": '{"retry": {"growth": "constant", "base": 1, "jitter": 2}}'}, r"retry: .*jitter"),
        ({"options": '{"retry": {"growth": "constant", "base": 1, "jitter": "x"}}'}, r"retry.jitter must be float"),
        ({"options": '{"retry": {"growth": "constant", "base": 1, "max_retries": -1}}'}, r"retry: .*max_retries"),
        ({"options": '{"retry": {"growth": "constant", "base": 1, "past_next_start": "no"}}'}, r"must be bool"),
        ({"options": '{"retry": {"growth": "constant", "base": 1, "max_retrys": 1}}'}, r"did you mean 'max_retries'"),
        ({"tags": '"web"'}, r"tags '\"web\"': it must be a JSON array of texts"),
        ({"tags": "[1]"}, r"tags '\[1\]': it must be a JSON array of texts"),
        ({"name": 5}, r"name 5: it must be text or null"),
        ({"name": "\ud800"}, r"name '\\ud800': name must be Unicode"),
        ({"paused": 5}, r"paused 5: it must be text or null"),
        ({"paused_until_us": "tomorrow"}, r"paused_until_us 'tomorrow': it must be null or whole microseconds"),
        ({"paused_until_us": 10**5_000}, r"paused_until_us <int>: it must be null or whole microseconds"),
        ({"paused_until_us": 10**30}, r"paused_until_us 10+: it must be null or whole microseconds"),
    ],
    ids=lambda value: ascii(value)[:60] if isinstance(value, str) else "",
)
def test_a_wrong_row_is_refused_with_its_id_column_and_value(columns, message):
    """Whoever wrote it finds it; whoever logs it is not flooded."""
    with pytest.raises(MalformedJob, match=message) as caught:
        columns_of(row(**columns))
    assert str(caught.value).startswith("stored job 'web': ")
    assert len(str(caught.value)) < 1_000
    assert isinstance(caught.value, InvalidJob)


seconds = st.integers(1, 10**14).map(lambda us: us / 1e6)
retries = st.builds(
    Retry,
    growth=st.sampled_from(Growth),
    base=st.timedeltas(Every(1).interval, LONGEST_DURATION) | seconds,
    cap=st.none() | seconds,
    max_retries=st.none() | st.integers(0, 10**6),
    jitter=st.floats(0, 1),
    past_next_start=st.booleans(),
)
clean = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
options = st.fixed_dictionaries(
    {},
    optional={
        "needs": clean | st.lists(clean, max_size=3) | st.dictionaries(clean, st.integers(1, 9), max_size=3),
        "priority": st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False),
        "timeout": st.none() | seconds,
        "retry": st.none() | retries,
        "overlap": st.sampled_from([Overlap.SKIP, Overlap.QUEUE, Overlap.ALLOW]),
        "max_running": st.none() | st.integers(1, 99),
        "missed": st.sampled_from(Missed),
        "grace": st.just(0) | seconds,
        "catch_up": st.integers(1, 10**4),
        "delivery": st.sampled_from(Delivery),
    },
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | clean,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(clean, inner, max_size=3),
    max_leaves=8,
)
definitions = st.builds(
    Columns,
    st.sampled_from(
        [
            Every("10s"),
            Every("1h", anchor=NOON, jitter="1m"),
            After(5),
            At(NOON),
            Calendar("1 month", origin=NOON, tz="Asia/Tokyo"),
            Cron("H H * * *"),
            (Every("1h") | Cron("@daily")).between(NOON).except_(Window(Cron("0 2 * * *"), "2h", reason="backup")),
        ]
    ),
    st.lists(values, max_size=3).map(tuple),
    st.dictionaries(clean, values, max_size=3),
    options.map(policy_of),
    st.booleans(),
    st.frozensets(clean, max_size=3),
    st.none() | clean,
)


@given(definitions)
def test_a_definition_reads_back_from_its_row(definition):
    """With every policy there is; and the row of what was read is the same row."""
    stored = row_of(definition)
    assert columns_of(stored) == definition
    assert row_of(columns_of(stored)) == stored


PIECES = [
    "[", "]", "{", "}", ",", ":", '"', '"a"', '"timeout"', '"retry"', '"growth"', '"base"', '"needs"', "1", "-",
    "1e999", "null", "true", "NaN", "\\", "\\ud800", '"skip"', '"overlap"', "\ud800", "\0", '"5s"', '"priority"',
    '"inline"',
]  # fmt: skip
json_like = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
names = st.sampled_from("timeout retry needs priority grace max_running overlap inline catch_up".split())
wild = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(), inner, max_size=4),
    max_leaves=8,
).map(json.dumps)
anything = st.text() | json_like | wild | st.none() | st.integers() | st.binary()
columns = st.sampled_from(StoredJob._fields)


@given(st.dictionaries(columns, anything, max_size=3))
@example({"options": '{"retry": {"growth": "constant", "base": 1e300}}'})
@example({"options": '{"grace": 1e-9}'})
def test_whatever_stands_in_a_row_it_is_read_or_refused(changes):
    """A row that cannot be read must never stop the rows behind it, and what can be read can be written."""
    found, error = read(row(**changes))
    if found is None:
        assert len(error) < 1_000
        assert error.isprintable()
    else:
        assert columns_of(row_of(found, changes.get("id", "web"))) == found


@pytest.mark.parametrize(
    "text",
    [
        "[" * 2**20,
        '{"a":' * 2**17,
        "[" * 990 + "]" * 990,
        '{"' + "k" * 2**19 + '": [' + "0," * 2**17 + '"\\u0000"]}',
        '["' + "\\u00e9" * 2**17 + '"]',
        "[" + "[]," * 2**18 + "[]]",
        "9" * 2**20,
        "[" + "1" * 4_000 + "." + "1" * 2**19 + "]",
        " " * 2**20,
        '"' + "\\" * 2**20,
        "(" * 2**20,
        "\ud800" * 2**20,
    ],
    ids=lambda text: text[:8].encode("ascii", "replace").decode(),
)
@pytest.mark.parametrize("column", ["id", "schedule", "args", "kwargs", "options", "tags", "name"])
def test_a_large_row_is_read_or_refused(column, text):
    """Rows come from a database that others may write into. One that took more than its share would never come back."""
    _, error = read(row(**{column: text}))
    assert len(error) < 1_000
