import sys


def check_build(version: str = sys.version) -> None:
    """Raise ImportError if `version` (as in `sys.version`) names a free-threaded build."""
    if "free-threading build" in version:
        number, *_ = version.split()
        msg = (
            f"timerqueue does not run on a free-threaded build of Python, and this is one of {number}: it relies on "
            "the GIL. Use the usual build, `python3.14` instead of `python3.14t`"
        )
        raise ImportError(msg)
