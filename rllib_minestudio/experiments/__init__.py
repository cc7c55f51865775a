"""Experiments: reading and validating them, running and resuming them, and their results."""
