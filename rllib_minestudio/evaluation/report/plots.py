"""The plots of a summary, as SVG to be put into a page."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import matplotlib
import numpy as np
from matplotlib.figure import Figure  # unlike pyplot, needs no display and keeps no state
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_summary import Rate, Summary

YES, NO, UNKNOWN = "#2a7a3b", "#b8473b", "#4a6fa5"

MOST_BINS = 30


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


def returns(summary: Summary) -> str:
    """How many episodes had which return, by success; infinite ones have no place."""
    return _histogram(summary, "return", lambda episode: episode.undiscounted_return)


def lengths(summary: Summary) -> str:
    """How many episodes had which length, by success."""
    return _histogram(summary, "length, steps", lambda episode: float(episode.length))


@_as_data
def differences(returns_pairs: NDArray[np.float64]) -> str:
    """Each paired episode's return under the new policy over that under the old.

    Args:
        returns_pairs: [pairs, 2] returns of the new policy and of the old. Pairs that are alike
            become one larger dot.
    """
    figure = Figure(figsize=(4.2, 4.0), layout="constrained")
    axes = figure.subplots()
    pairs, counts = np.unique(returns_pairs, axis=0, return_counts=True)
    axes.scatter(pairs[:, 1], pairs[:, 0], s=22 * counts, color=UNKNOWN, alpha=0.6)
    axes.axline((0.0, 0.0), slope=1.0, color="#777777", linestyle="--", linewidth=1.0)
    axes.set_title("paired episodes: above the line, the new policy is better", fontsize="small")
    axes.set_xlabel("return, old")
    axes.set_ylabel("return, new")
    return _svg(figure, axes)


@_as_data
def _histogram(summary: Summary, label: str, value_of: Callable[[EvaluatedEpisode], float]) -> str:
    figure = Figure(figsize=(6.0, 3.0), layout="constrained")
    axes = figure.subplots()
    outcomes = [
        (name, color, [v for v in map(value_of, found) if math.isfinite(v)])
        for name, color, found in _outcomes(summary)
    ]
    values = [value for _, _, found in outcomes for value in found]
    if values:
        axes.hist(
            [found for _, _, found in outcomes],
            bins=_bins(values),
            stacked=True,
            color=[color for _, color, _ in outcomes],
            label=[name for name, _, _ in outcomes],
        )
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if _are_whole(values):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel(label)
    axes.set_ylabel("episodes")
    if summary.has_success and values:
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return _svg(figure, axes)


def _bins(values: Sequence[float]) -> list[float]:
    """Edges of bins: one around each whole number where there are few, else at most `MOST_BINS`."""
    low, high = min(values), max(values)
    if _are_whole(values) and high - low < MOST_BINS:
        return list(np.arange(low - 0.5, high + 1.0))
    return list(np.histogram_bin_edges(values, bins=min(MOST_BINS, len(values))))


def _are_whole(values: Sequence[float]) -> bool:
    return all(float(value).is_integer() for value in values)


def _outcomes(summary: Summary) -> list[tuple[str, str, Sequence[EvaluatedEpisode]]]:
    if not summary.has_success:
        return [("episode", UNKNOWN, summary.episodes)]
    yes = [episode for episode in summary.episodes if episode.counts_as_success]
    no = [episode for episode in summary.episodes if not episode.counts_as_success]
    return [("success", YES, yes), ("no success", NO, no)]


def _svg(figure: Figure, axes: matplotlib.axes.Axes) -> str:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    stream = io.StringIO()
    # The same numbers shall give the same page.
    with matplotlib.rc_context({"svg.hashsalt": "rllib_minestudio", "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]
