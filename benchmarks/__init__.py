"""What a run costs and how punctual it is, beside other schedulers: `python -m benchmarks list` says what there is."""
