"""An uptime agent on top of the scheduler: `timerqueue run uptime.toml`, `timerqueue watch URL...`."""
