"""Suites of tasks that a program judges: what they are, how they are run, what comes of it."""
