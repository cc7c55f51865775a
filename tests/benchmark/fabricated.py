"""Results of a small benchmark, as runs leave them, with every kind of task."""

import numpy as np

from rllib_minestudio.benchmark.results import BenchmarkResults, EpisodeResult, TaskResult
from rllib_minestudio.recordings.video import VideoWriter

SIZE = (64, 36)
FRAMES = 12
EVIL = "<script>document.title = 'owned'</script>"


def episodes(successes, count=4, **items):
    """Episodes, the first of which succeed; `items` gives each item's count by episode."""
    return tuple(
        EpisodeResult(
            index=i,
            seed=100 + i,
            success=i < successes,
            progress=1.0 if i < successes else 0.25,
            undiscounted_return=float(i),
            length=50,
            items={name: counts[i] for name, counts in items.items()},
        )
        for i in range(count)
    )


def task(name, category, status="played", **others):
    facts = {
        "text": f"Do {name}.",
        "success": "pickup:dirt>=1",
        "time_limit": 1200,
        "digest": "abc",
        **others,
    }
    return TaskResult(name=name, category=category, status=status, **facts)


def results(*tasks, **request):
    return BenchmarkResults(
        suite="tiny",
        tasks=tasks,
        player={"name": "some_agent", "weights": "1234abcd", "deterministic": False},
        request={"episodes": 4, "seed": 7, "steps": None, "rules": 12, **request},
        versions={"python": "3.11.0", "commit": "cafe123"},
        seconds=3725.0,
        created="2026-01-02T03:04:05+00:00",
    )


def small_video(file, shade):
    """Write a video of frames that are all one grey."""
    with VideoWriter(file) as video:
        for _ in range(FRAMES):
            video.add(np.full((*SIZE[::-1], 3), shade, np.uint8))


def with_everything(folder):
    """Results of five tasks, and the videos of one of them below `folder`."""
    videos = {outcome: f"tasks/dig/{outcome}.mp4" for outcome in ("success", "failure")}
    for shade, file in zip((40, 200), videos.values(), strict=True):
        small_video(folder / file, shade)
    items = {"log": [3, 0, 2, 1], "stick": [4, 0, 0, 0]}
    return results(
        task("dig", "mine", episodes=episodes(1), videos=videos),
        task("fell", "mine", episodes=episodes(4)),
        task("tree", "craft", episodes=episodes(0, **items)),
        task("swim", "travel", "marked", reason="There is no water."),
        task(f"broken_{EVIL}", "craft", "failed", reason=f"The engine said {EVIL}.", text=EVIL),
    )
