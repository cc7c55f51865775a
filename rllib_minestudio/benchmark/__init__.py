"""The benchmark: suites of tasks whose success is decided by a program, and runs of them."""
