"""An uptime agent on the scheduler: `timerqueue run uptime.toml`, `timerqueue watch URL...`.

It offers commands and no names to import. `text` and `toml` are pure, `checks` asks targets, `config` names them,
`targets` keeps their status, `show` displays it. `app` joins them on one event loop. None reads a clock itself: each is
given one.
"""
