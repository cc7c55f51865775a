"""The learning curves of a run's trials, read from what Tune wrote down."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rllib_minestudio.console import short
from rllib_minestudio.evaluation.learning_curve import LearningCurve, draw, mean_and_range
from rllib_minestudio.experiments.outputs.result_metrics import ENV_STEPS, RETURN, metric

SEED = "seed"


def draw_curves(
    title: str,
    trials: Sequence[tuple[Path, Mapping[str, Any]]],
    path: Path,
    random_policy: float | None,
    window: int,
) -> bool:
    """Draw a curve per trial; those that differ in their seed only become one with a band.

    Args:
        title: Of the picture.
        trials: The folder of each, and the settings that tell it from the others.
        path: Where the picture goes.
        random_policy: Mean return of the random policy, if known.
        window: Of how many of the last episodes the returns are means.

    Returns:
        Whether there was anything to draw: an episode that ended.
    """
    groups: dict[tuple[str, int], list[LearningCurve]] = {}
    for number, (folder, settings) in enumerate(trials):
        points = [
            (steps, mean)
            for result in read_history(folder)
            if (steps := metric(result, ENV_STEPS)) is not None
            and (mean := metric(result, RETURN)) is not None
        ]
        if points:
            others = {name: value for name, value in settings.items() if name != SEED}
            is_alike = SEED in settings or len(trials) == 1
            label = _label(others) or ("agent" if is_alike else f"trial {number}")
            curve = LearningCurve(label, [x for x, _ in points], [y for _, y in points])
            groups.setdefault((repr(others), 0 if is_alike else number), []).append(curve)
    curves = [
        mean_and_range(
            f"{runs[0].label}, {len(runs)} seeds: mean and range"
            if len(runs) > 1
            else runs[0].label,
            runs,
        )
        for runs in groups.values()
    ]
    if curves:
        draw(title, curves, path, random_policy, window)
    return bool(curves)


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
        if not isinstance(result, dict) or "training_iteration" not in result:
            continue
        by_iteration[result["training_iteration"]] = result
    return [by_iteration[iteration] for iteration in sorted(by_iteration)]
