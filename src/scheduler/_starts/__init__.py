"""Which start of a job stands in the queue, and what keeps it out: pauses, rests after crashes, parking.

The only folder that puts a job's next start into the queue or takes it out. It counts the ticks that have no run, with
the reason. It never starts a run and knows no store. All of it happens on the loop, but for what adds a job.
"""
