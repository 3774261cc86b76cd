"""Start `uptime_agent` under its old name. An import is refused, with the new name."""

import runpy

if __name__ == "__main__":
    runpy.run_module("uptime_agent", run_name="__main__", alter_sys=True)
else:
    msg = (
        "the agent is the package uptime_agent: import uptime_agent.checks in place of scheduler.agent.checks, and "
        "uptime_agent.testing in place of scheduler.testing.checks"
    )
    raise ImportError(msg, name=__name__)
