"""A suite of short tasks, and results of known numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from rllib_minestudio.benchmark.request import BenchmarkRequest
from rllib_minestudio.benchmark.results import PLAYED, BenchmarkResults, EpisodeResult, TaskResult

TASKS: dict[str, dict[str, Any]] = {
    "move/walk": {
        "text": "Walk away.",
        "category": "move",
        "time_limit": 6,
        "success": "distance>=0.4",
        "progress": {"of": "distance", "goal": 2},
        "because": "The distance is that from where the episode began.",
    },
    "move/stay": {
        "text": "Stay alive.",
        "category": "move",
        "time_limit": 4,
        "judged": "at_end",
        "success": "alive>=4",
        "because": "It counts the steps lived.",
        "by_chance": "Nothing is dangerous so soon.",
    },
    "other/dance": {
        "text": "Dance well.",
        "category": "other",
        "time_limit": 6,
        "undecidable": "Taste is no condition.",
    },
}


class FailsInStep:
    """A callback of a task that cannot be played."""

    def after_step(self, sim: Any, obs: Any, reward: float, *_: Any) -> Any:
        """Fail."""
        raise RuntimeError("the string broke")


def write_suite(folder: Path, tasks: dict[str, dict[str, Any]]) -> str:
    """Write task files; returns the folder's path."""
    for name, task in tasks.items():
        file = folder / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(task))
    return str(folder)


@pytest.fixture(scope="session")
def suite(tmp_path_factory) -> str:
    """A folder with the task files of `TASKS`."""
    return write_suite(tmp_path_factory.mktemp("short"), TASKS)


@pytest.fixture
def request_of(suite, tmp_path) -> Callable[..., BenchmarkRequest]:
    """Builds requests: two episodes of the suite by the random agent, unless told otherwise."""

    def build(**changes: Any) -> BenchmarkRequest:
        out = str(tmp_path / changes.pop("out", "out"))
        given = {"player": "random", "suite": suite, "episodes": 2, "no_videos": True, **changes}
        return BenchmarkRequest(out=out, **given)

    return build


def task_result(name: str, successes: Sequence[bool], **changes: Any) -> TaskResult:
    """A played task, whose progress is 1 or 1/4."""
    episodes = tuple(
        EpisodeResult(index, 100 + index, success, 1.0 if success else 0.25, float(success), 7)
        for index, success in enumerate(successes)
    )
    given: dict[str, Any] = {
        "category": "any",
        "text": "Do it.",
        "success": "return>0",
        "time_limit": 10,
        "digest": name,
        "status": PLAYED,
        "episodes": episodes,
        **changes,
    }
    return TaskResult(name=name, **given)


def results_of(*tasks: TaskResult, seed: int = 0, player: str = "one") -> BenchmarkResults:
    """Results of some tasks."""
    request = {"seed": seed, "rules": 2, "episodes": 4}
    return BenchmarkResults("short", tasks, {"name": player}, request, {"python": "3"})
