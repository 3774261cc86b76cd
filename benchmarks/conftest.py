"""`pytest benchmarks` needs a plugin that the tests of tests/ do without."""

pytest_plugins = ["pytest_benchmark.plugin"]
