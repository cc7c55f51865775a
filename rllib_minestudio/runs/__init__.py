"""What a run keeps and reports: checkpoints, resuming, trackers, videos, resources.

Ray Tune callbacks and what they need; they work with `rllib train` and in your own
`ray.tune.Tuner(run_config=RunConfig(callbacks=[...]))` alike.
"""
