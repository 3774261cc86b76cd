"""An uptime agent on the scheduler: `timerqueue run uptime.toml`, `timerqueue watch URL...`.

An application: it offers commands, and no names to import. Each folder answers one question and is imported by its
face. `text` and `toml` are pure, `checks` asks targets, `config` names them, `targets` keeps their status, `show`
displays it. `app` puts them together on one event loop. None of them reads a clock: they are given one.
"""
