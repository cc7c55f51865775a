"""What a run keeps and reports: checkpoints, progress, trackers, videos and a summary."""
