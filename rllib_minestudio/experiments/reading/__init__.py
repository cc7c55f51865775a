"""From an experiment file and `--set` to a plan for Ray Tune, with every problem reported."""
