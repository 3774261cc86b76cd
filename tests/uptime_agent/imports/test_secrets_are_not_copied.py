"""Secrets of another monitor's file stay there: a variable stands for each, or its check waits to be completed."""

import pytest

from foreign_monitors import bring, gatus, kuma

SECRET = "hunter22"
STATUS = {"conditions": ["[STATUS] == 200"]}
SITE = {"type": "http", "accepted_statuscodes": ["200-299"], "maxredirects": 5}
DIALOGUE = [{"expect": "^220"}, {"send": f"AUTH {SECRET}"}]
BLACKBOX = {
    "m": {"prober": "http", "http": {"body": f"password={SECRET}"}},
    "t": {"prober": "tcp", "tcp": {"query_response": DIALOGUE}},
}
TARGETS = {"m": [f"https://me:{SECRET}@shop.example"], "t": ["mail.example:25"]}
PLACES = {
    "a URL": ("gatus", gatus({"url": f"https://me:{SECRET}@shop.example/", **STATUS})),
    "a query": ("gatus", gatus({"url": f"https://shop.example/?token={SECRET}", **STATUS})),
    "a body in JSON": (
        "gatus",
        gatus({"url": "https://shop.example/", "body": f'{{"password": "{SECRET}"}}', **STATUS}),
    ),
    "a form": ("gatus", gatus({"url": "https://shop.example/", "body": f"user=me&pass={SECRET}", **STATUS})),
    "XML": ("gatus", gatus({"url": "https://shop.example/", "body": f"<password>{SECRET}</password>", **STATUS})),
    "GraphQL": (
        "gatus",
        gatus({"url": "https://shop.example/", "body": f'l(token: "{SECRET}")', "graphql": True, **STATUS}),
    ),
    "a header": ("gatus", gatus({"url": "https://shop.example/", "headers": {"X-Api-Key": SECRET}, **STATUS})),
    "a cookie": ("gatus", gatus({"url": "https://shop.example/", "headers": {"Cookie": f"id={SECRET}"}, **STATUS})),
    "OAuth": (
        "gatus",
        gatus({"url": "https://shop.example/", "client": {"oauth2": {"client-secret": SECRET}}, **STATUS}),
    ),
    "a URL in Kuma": ("kuma", kuma({**SITE, "url": f"https://me:{SECRET}@shop.example/"})),
    "a body in Kuma": ("kuma", kuma({**SITE, "url": "https://shop.example/", "body": f'{{"apiKey": "{SECRET}"}}'})),
    "basic auth": (
        "kuma",
        kuma({**SITE, "url": "https://a.example/", "basic_auth_user": "me", "basic_auth_pass": SECRET}),
    ),
    "a database": (
        "kuma",
        kuma({"type": "postgres", "databaseConnectionString": f"postgres://me:{SECRET}@db.example/d"}),
    ),
    "a push token": ("kuma", kuma({"type": "push", "pushToken": SECRET})),
    "a name": ("kuma", kuma({**SITE, "name": "site", "url": f"https://shop.example/?api_key={SECRET}"})),
    "Heartbeat": (
        "heartbeat",
        {
            "heartbeat.monitors": [
                {"type": "http", "urls": [f"https://me:{SECRET}@shop.example"], "username": "me", "password": SECRET},
                {"type": "tcp", "hosts": ["redis.example:6379"], "check.send": f"AUTH {SECRET}\r\n"},
            ]
        },
    ),
    "blackbox": ("blackbox", {"modules": BLACKBOX}),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_nowhere_in_what_is_written_or_told(place, tmp_path):
    """Neither in our file nor on standard error."""
    monitor, content = PLACES[place]
    found = bring(monitor, content, tmp_path, targets=TARGETS if monitor == "blackbox" else None)
    assert found.checks
    assert SECRET in found.source or monitor == "blackbox"
    assert SECRET not in found.text + "\n".join(found.left)


def test_credentials_of_a_url_are_sent_in_a_header(tmp_path):
    """As every client does with them."""
    found = bring(*PLACES["a URL"], tmp_path)
    assert found.check["url"] == "https://shop.example/"
    assert found.check["headers"] == {"Authorization": {"env": "E0_AUTHORIZATION"}}
    assert found.told("set E0_AUTHORIZATION: Basic and user:password of its URL in base64")


def test_a_body_with_a_secret_comes_from_the_environment(tmp_path):
    """As a whole: no variable is replaced within a text."""
    found = bring(*PLACES["a body in JSON"], tmp_path)
    assert found.check["body"] == {"env": "E0_BODY"}


def test_a_check_with_a_secret_in_its_query_waits_for_it(tmp_path):
    """Nothing within a URL comes from the environment, and a check without it would be down for no reason."""
    found = bring(*PLACES["a query"], tmp_path)
    assert (found.check["url"], found.check["enabled"]) == ("https://shop.example/?token=***", False)
    assert found.told("the secret in its URL: put it in place of ***", found.line_of("token="))


def test_two_checks_that_are_called_alike_have_variables_of_their_own(tmp_path):
    """They shared one, and so each other's secret."""
    names = ["site 1", "site-1", "site 1"]
    each = [{**SITE, "name": name, "url": "https://a.example/", "headers": '{"X-Token": "t"}'} for name in names]
    found = bring("kuma", kuma(*each), tmp_path)
    variables = [check["headers"]["X-Token"]["env"] for check in found.checks.values()]
    assert len(set(variables)) == 3


def test_a_variable_of_the_other_file_stays_the_one(tmp_path):
    """Whoever sets it sets it for both."""
    endpoint = {"url": "https://shop.example/", "headers": {"Authorization": "${SHOP_TOKEN}"}, **STATUS}
    found = bring("gatus", gatus(endpoint), tmp_path)
    assert found.check["headers"] == {"Authorization": {"env": "SHOP_TOKEN"}}
