"""An error for imports of `scheduler.agent`, which has become the package `uptime_agent`."""

msg = (
    "the agent is the package uptime_agent: import uptime_agent.checks in place of scheduler.agent.checks, and "
    "uptime_agent.testing in place of scheduler.testing.checks"
)
raise ImportError(msg, name=__name__)
