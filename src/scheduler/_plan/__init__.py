"""When would a job start? Planners turn schedules into microseconds; what follows an end, a crash or a downtime is
decided here.

Pure, but for the timeline, which follows one clock, and for the first start of a job that is added, which reads it
once. It sees schedules and policies, never a job, and knows no queue and no store. Any thread.
"""
