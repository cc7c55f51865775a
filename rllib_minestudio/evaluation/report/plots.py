"""The plots of a summary, as SVG to be put into a page."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import matplotlib
from matplotlib.figure import Figure  # unlike pyplot, needs no display and keeps no state
from matplotlib.ticker import MaxNLocator

from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_summary import Rate, Summary

YES, NO, UNKNOWN = "#2a7a3b", "#b8473b", "#4a6fa5"


_Drawn = TypeVar("_Drawn", bound=Callable[..., str])


def _as_data(draw: _Drawn) -> _Drawn:
    """Decorate what draws: a `$` in the name of a task begins no formula."""
    return matplotlib.rc_context({"text.parse_math": False})(draw)


@_as_data
def rates(summary: Summary) -> str:
    """Success rate and interval of each task."""
    groups = summary.tasks
    names = list(groups)
    figure = Figure(figsize=(6.0, 0.9 + 0.35 * len(names)), layout="constrained")
    axes = figure.subplots()
    for y, name in enumerate(names):
        rate = Rate.of(groups[name])
        low, high = rate.interval
        axes.plot([low, high], [y, y], color=UNKNOWN, linewidth=2.0)
        axes.plot([rate.yes_rate], [y], "o", color=UNKNOWN)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("success rate")
    return _svg(figure, axes)


@_as_data
def returns(summary: Summary) -> str:
    """Every episode's return over its length, coloured by success; infinite ones have no place."""
    figure = Figure(figsize=(6.0, 3.0), layout="constrained")
    axes = figure.subplots()
    for label, color, found in _outcomes(summary):
        episodes = [e for e in found if math.isfinite(e.undiscounted_return)]
        axes.scatter(
            [episode.length for episode in episodes],
            [episode.undiscounted_return for episode in episodes],
            color=color,
            label=label,
            alpha=0.75,
            s=22,
        )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("length, steps")
    axes.set_ylabel("return")
    if summary.has_success:
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return _svg(figure, axes)


def _outcomes(summary: Summary) -> list[tuple[str, str, Sequence[EvaluatedEpisode]]]:
    if not summary.has_success:
        return [("episode", UNKNOWN, summary.episodes)]
    yes = [episode for episode in summary.episodes if episode.counts_as_success]
    no = [episode for episode in summary.episodes if not episode.counts_as_success]
    return [("success", YES, yes), ("no success", NO, no)]


def _svg(figure: Figure, axes: matplotlib.axes.Axes) -> str:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    stream = io.StringIO()
    # The same numbers shall give the same page.
    with matplotlib.rc_context({"svg.hashsalt": "rllib_minestudio", "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]
