"""An uptime agent on the scheduler: `timerqueue run uptime.toml`.

No folder reads a clock itself: each is given one.
"""
