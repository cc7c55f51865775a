"""What an experiment is: reading and judging it, running and resuming it, and its results."""
