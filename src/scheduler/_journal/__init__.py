"""What must survive the end of the process, as rows: jobs, their states, and the records of their ticks.

The journal notes what happens and writes batches down; it never sends them, and knows no store, no queue, no pool and
no thread but the loop's. Without a store no job has the name of a task, so nobody notes anything. The functions that
turn jobs into rows, and rows into what a job is, are pure.
"""
