"""The page of a benchmark's results."""
