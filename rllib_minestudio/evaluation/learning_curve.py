"""Draws learning curves as a PNG: of one run, of the trials of a search, of several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure  # unlike pyplot, needs no display and keeps no state
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from rllib_minestudio.whole_file import whole_file

COLOUR = "#2a7a3b"
"""Of a curve that is alone."""

MANY = 3
"""From so many curves on, their labels stand beside the plot."""

WIDTH, WIDTH_WITH_LABELS = 7.0, 9.0
"""In inches."""


FAR_BELOW = 1.5
"""A level more than so many times as high as all curves would press them to the bottom."""


@dataclass(frozen=True)
class LearningCurve:
    """Mean episode return over time, of one run or of several that differ by chance only.

    Attributes:
        label: What tells it from the other curves of a picture.
        env_steps: Environment steps sampled so far, at each point.
        returns: Mean return of the recent episodes, at each point.
        lowest: Of what `returns` is the mean of, at each point: episodes of one run, or means of
            several runs; None if it is not known.
        highest: The same.
    """

    label: str
    env_steps: Sequence[float]
    returns: Sequence[float]
    lowest: Sequence[float] | None = None
    highest: Sequence[float] | None = None


def mean_and_range(label: str, runs: Sequence[LearningCurve]) -> LearningCurve:
    """Put several runs together into one curve, over the steps that all of them have reached.

    Args:
        label: Of the new curve.
        runs: At least one, each with a point at least; the steps of its points rise.
    """
    first = max(run.env_steps[0] for run in runs)
    last = min(run.env_steps[-1] for run in runs)
    steps = np.unique([step for run in runs for step in run.env_steps if first <= step <= last])
    if len(runs) == 1 or not len(steps):
        return LearningCurve(label, runs[0].env_steps, runs[0].returns)
    returns: NDArray[Any] = np.stack(
        [np.interp(steps, run.env_steps, run.returns) for run in runs]
    )  # [runs, points]
    mean, low, high = (of(axis=0).tolist() for of in (returns.mean, returns.min, returns.max))
    return LearningCurve(label, steps.tolist(), mean, low, high)


def draw(
    title: str,
    curves: Sequence[LearningCurve],
    path: Path,
    random_policy: float | None = None,
    window: int | None = None,
    highest_possible: float | None = None,
) -> None:
    """Write learning curves as a PNG file.

    Args:
        title: Of the picture.
        curves: At least one.
        path: Where to; its folder must exist.
        random_policy: Mean return of the random policy, drawn as a level; None leaves it out.
        window: Of how many of the last episodes each return is the mean; None does not say.
        highest_possible: Return that no episode exceeds, drawn as a level unless the curves are far
            below it, where the legend names it; None leaves it out.
    """
    figure = Figure(figsize=(WIDTH, 4.0), dpi=120, layout="constrained")
    axes = figure.subplots()
    colours = cycle(colormaps["tab10"].colors if len(curves) > 1 else [COLOUR])  # type: ignore[attr-defined]
    for curve, colour in zip(curves, colours, strict=False):
        axes.plot(curve.env_steps, curve.returns, color=colour, linewidth=2.0, label=curve.label)
        if curve.lowest is not None and curve.highest is not None:
            axes.fill_between(
                curve.env_steps, curve.lowest, curve.highest, color=colour, alpha=0.2, linewidth=0
            )
    if random_policy is not None:
        label = f"random policy ({random_policy:.2f})"
        axes.axhline(random_policy, color="#777777", linestyle="--", label=label)
    if highest_possible is not None:
        label = f"reward limit ({highest_possible:g})"  # of `max_reward_times`, not of the world
        if highest_possible <= FAR_BELOW * max(float(np.max(_highest(curve))) for curve in curves):
            axes.axhline(highest_possible, color="#777777", linestyle=":", label=label)
        else:
            axes.plot([], [], " ", label=label)
    axes.set_title(title, loc="left")
    axes.set_xlabel("environment steps")
    axes.set_ylabel("episode return" + (f"\nmean of the last {window}" if window else ""))
    axes.xaxis.set_major_locator(MaxNLocator(6))  # more numbers of seven digits would touch
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(bottom=min(0.0, *(float(np.min(_lowest(curve))) for curve in curves)))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    _add_legend(figure, axes, beside=len(curves) >= MANY)
    with whole_file(path) as partial:
        figure.savefig(partial, format="png")


def _add_legend(figure: Figure, axes: Axes, *, beside: bool) -> None:
    """Say which curve is which, above the plot or beside it; within it, a curve would go through.

    Args:
        figure: The picture.
        axes: With all curves and levels.
        beside: Whether the labels are too many for a line above; if they are too long, they go
            beside the plot as well.
    """
    if not beside:
        legend = figure.legend(frameon=False, loc="outside upper right", ncols=3, fontsize="small")
        figure.draw_without_rendering()
        if legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()
    figure.set_figwidth(WIDTH_WITH_LABELS)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")


def _lowest(curve: LearningCurve) -> Sequence[float]:
    return curve.returns if curve.lowest is None else curve.lowest


def _highest(curve: LearningCurve) -> Sequence[float]:
    return curve.returns if curve.highest is None else curve.highest
