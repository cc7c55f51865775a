"""The benchmark: suites of tasks whose success a program decides, and runs over them."""
