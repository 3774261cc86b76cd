"""An uptime agent on the scheduler: `timerqueue run uptime.toml`. No folder reads a clock: each is given one."""
