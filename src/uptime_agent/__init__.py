"""An uptime agent on the scheduler: `timerqueue run uptime.toml`, `timerqueue watch URL...`.

It offers commands and no names to import. No folder reads a clock itself: each is given one.
"""
