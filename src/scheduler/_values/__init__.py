"""Which words there are: outcomes, states, events, pauses, retries, policies, counts, and the errors.

Values and pure functions over them. Nothing here knows a job, a queue, a store or a clock; any thread may use all of
it, except that a tally is changed by the loop alone.
"""
