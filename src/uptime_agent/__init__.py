"""An uptime agent on top of the scheduler: `timerqueue run uptime.toml`, `timerqueue watch URL...`.

An application, which offers its commands and no names to import. Each folder answers one question and is imported by
its face: `text` and `toml` are pure, `checks` asks targets, `config` says which, `targets` keeps how they stand, `show`
shows it. `app` puts them together on one event loop. None of them reads a clock: they are given one.
"""
