"""The learning curves of a run's trials, read from what Tune wrote down."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rllib_minestudio.console import short
from rllib_minestudio.evaluation.learning_curve import LearningCurve, draw, mean_and_range
from rllib_minestudio.experiments.outputs.result_metrics import (
    ENV_STEPS,
    HIGHEST_RETURN,
    ITERATION,
    LOWEST_RETURN,
    RETURN,
    metric,
)

SEED = "seed"


def draw_curves(
    title: str,
    trials: Sequence[tuple[Path, Mapping[str, Any]]],
    path: Path,
    random_policy: float | None,
    window: int,
    highest_possible: float | None = None,
) -> bool:
    """Draw a curve per trial; those that differ in their seed only become one with a band.

    A trial that is alone has a band too: from the lowest to the highest return of the episodes that
    its mean is of.

    Args:
        title: Of the picture.
        trials: The folder of each, and the settings that tell it from the others.
        path: Where the picture goes.
        random_policy: Mean return of the random policy, if known.
        window: Of how many of the last episodes the returns are means.
        highest_possible: Return that no episode exceeds, if known.

    Returns:
        Whether there was anything to draw: an episode that ended.
    """
    groups: dict[tuple[str, int], list[LearningCurve]] = {}
    for number, (folder, settings) in enumerate(trials):
        points = _points(folder)
        if points:
            others = {name: value for name, value in settings.items() if name != SEED}
            is_alike = SEED in settings or len(trials) == 1
            label = _label(others) or ("agent" if is_alike else f"trial {number}")
            curve = LearningCurve(label, *zip(*points, strict=True))
            groups.setdefault((repr(others), 0 if is_alike else number), []).append(curve)
    curves = [_curve_of(runs, is_alone=len(groups) == 1) for runs in groups.values()]
    if curves:
        draw(title, curves, path, random_policy, window, highest_possible)
    return bool(curves)


def _points(trial_folder: Path) -> list[tuple[float, float, float, float]]:
    """Read (steps, mean, lowest, highest return of recent episodes) of each iteration."""
    names = (ENV_STEPS, RETURN, LOWEST_RETURN, HIGHEST_RETURN)
    lines = [[metric(result, name) for name in names] for result in read_history(trial_folder)]
    return [
        (steps, mean, mean if lowest is None else lowest, mean if highest is None else highest)
        for steps, mean, lowest, highest in lines
        if steps is not None and mean is not None
    ]


def _curve_of(runs: Sequence[LearningCurve], is_alone: bool) -> LearningCurve:
    """Put runs that differ by chance together; one run keeps its band only if it is alone."""
    label = runs[0].label
    if len(runs) > 1:
        return mean_and_range(f"{label}, {len(runs)} seeds: mean and range", runs)
    if is_alone:
        return replace(runs[0], label=f"{label}: mean and range")
    return replace(runs[0], lowest=None, highest=None)


def _label(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={short(value)}" for name, value in settings.items())


def read_history(trial_folder: Path) -> list[dict[str, Any]]:
    """Read the results of a trial from its `result.json`, one per iteration.

    Its `progress.csv` has only the columns of the first result, in which no episode may have
    ended yet. Iterations that were repeated after a crash count as they went the last time; a
    last line that the crash cut off is left out.
    """
    file = trial_folder / "result.json"
    by_iteration: dict[int, dict[str, Any]] = {}
    for line in file.read_text().splitlines() if file.is_file() else []:
        try:
            result = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(result, dict) or ITERATION not in result:
            continue
        by_iteration[result[ITERATION]] = result
    return [by_iteration[iteration] for iteration in sorted(by_iteration)]
