"""An evaluation's summary for human readers: tables, plots, and one HTML page."""

from __future__ import annotations

import base64
import io
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import matplotlib
import numpy as np
from jinja2 import Environment, StrictUndefined
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure  # unlike pyplot, needs no display and keeps no state
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from rllib_minestudio.errors import RecordingError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.summary import (
    CONFIDENCE,
    PairedComparison,
    Rate,
    Summary,
    paired_returns,
    spread,
)
from rllib_minestudio.foundation.console import Aligned, clock
from rllib_minestudio.foundation.files import whole_file, write_whole
from rllib_minestudio.recordings import Recording
from rllib_minestudio.recordings.layout import VIDEO_FILE
from rllib_minestudio.recordings.video import FRAMES_PER_SECOND, small_film

MAX_EMBEDDED_BYTES = 7 * 1024**2
"""Limit for all films in a page together, which base64 makes a third larger: a page of at most
10 MB can be mailed. Further videos are linked, relative to the page."""

MOST_MOMENTS = 24
"""Moments of reward that are listed below an episode's film."""


def write_page(
    summary: Summary,
    file: Path,
    compared: tuple[Summary, PairedComparison] | None = None,
    max_embedded: int = MAX_EMBEDDED_BYTES,
) -> None:
    """Write the HTML page of an evaluation, atomically.

    Args:
        summary: The evaluation to show.
        file: Destination; its folder is created.
        compared: Another evaluation, and the result of the comparison with it.
        max_embedded: Bytes of video to embed in the page, starting with the first episodes.
    """
    template = Path(__file__).with_suffix(".html").read_text()
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    text = environment.from_string(template).render(
        name=policy_name(summary),
        summary=summary,
        confidence=CONFIDENCE,
        columns=COLUMNS,
        rows=task_rows(summary),
        plots=_plots(summary, None if compared is None else compared[0]),
        mode="most probable actions" if summary.policy.get("deterministic") else "sampled actions",
        checkpoint=summary.policy.get("checkpoint"),
        comparison=None if compared is None else compared[1],
        compared_rows=[] if compared is None else comparison_rows(summary, compared[0]),
        tiles=_tiles(summary, file.parent, max_embedded),
        identity=json.dumps(
            {"policy": dict(summary.policy), "config": dict(summary.config)}, indent=2, default=str
        ),
    )
    write_whole(file, text)


def _plots(summary: Summary, old: Summary | None) -> list[str]:
    """Draw what a table does not show: rates of several tasks, values that differ."""
    drawn = [rates(summary)] if summary.has_success and len(summary.tasks) > 1 else []
    if len({episode.undiscounted_return for episode in summary.episodes}) > 1:
        drawn.append(returns(summary))
    if len({episode.length for episode in summary.episodes}) > 1:
        drawn.append(lengths(summary))
    return drawn if old is None else [*drawn, differences(paired_returns(summary, old))]


class Moment(NamedTuple):
    """A step of an episode with a reward, at a time of its film in seconds."""

    seconds: float
    reward: float

    @property
    def clock(self) -> str:
        """The time as m:ss."""
        return clock(self.seconds)


def _tiles(summary: Summary, folder: Path, max_embedded: int) -> list[dict[str, Any]]:
    sources, tiles = VideoSources(folder, max_embedded), []
    for episode in summary.episodes:
        video = video_of(episode)
        shown = {"video": video and sources.source(video), "moments": moments_of(episode)}
        tiles.append({"episode": episode, **shown})
    return tiles


def moments_of(episode: EvaluatedEpisode) -> list[Moment]:
    """Return the first `MOST_MOMENTS` steps with a reward of a recorded episode.

    MineStudio's format has none, as it stores no rewards.
    """
    if episode.recording is None or not Path(episode.recording).is_dir():
        return []
    try:
        recording = Recording(episode.recording)
        reward = recording.steps["reward"]
        fps = float((recording.meta.get("video") or {}).get("fps", FRAMES_PER_SECOND))
    except RecordingError:  # it has been removed, or is damaged; the page shows the rest
        return []
    steps = np.flatnonzero(reward)[:MOST_MOMENTS].tolist()
    # Frame 0 is before the first step, so the picture after step t is frame t + 1.
    return [Moment((t + 1) / fps, float(reward[t])) for t in steps]


def video_of(episode: EvaluatedEpisode) -> Path | None:
    """The mp4 file of an episode's recording, in either format; None if there is none."""
    if episode.recording is None:
        return None
    path = Path(episode.recording)
    if path.suffix == ".pkl":  # MineStudio's format
        path = path.with_name(path.name.replace("info_", "video_")).with_suffix(".mp4")
    else:
        path = path / VIDEO_FILE
    return path if path.is_file() else None


# ----------------------------------------------------------- a summary's plots, as SVG for the page

YES, NO, UNKNOWN = "#2a7a3b", "#b8473b", "#4a6fa5"

MOST_BINS = 30


_Drawn = TypeVar("_Drawn", bound=Callable[..., str])


def _as_data(draw: _Drawn) -> _Drawn:
    """Decorate a drawing function so that a `$` in a task's name does not start a formula."""
    return matplotlib.rc_context({"text.parse_math": False})(draw)


@_as_data
def rates(summary: Summary) -> str:
    """Draw each task's success rate and its confidence interval."""
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
    """Draw a histogram of the finite returns, split by success."""
    return _histogram(summary, "return", lambda episode: episode.undiscounted_return)


def lengths(summary: Summary) -> str:
    """Draw a histogram of the episode lengths, split by success."""
    return _histogram(summary, "length, steps", lambda episode: float(episode.length))


@_as_data
def differences(returns_pairs: NDArray[np.float64]) -> str:
    """Plot each paired episode's return under the new policy against that under the old one.

    Args:
        returns_pairs: [pairs, 2] returns of the new and the old policy. Equal pairs become one
            larger dot.
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
        drawn: Any = axes.hist(
            [found for _, _, found in outcomes],
            bins=_bins(values),
            stacked=True,
            color=[color for _, color, _ in outcomes],
            label=[name for name, _, _ in outcomes],
        )
        if len(outcomes) > 1:  # told apart by more than their colours
            for bar in drawn[2][-1]:
                bar.set_hatch("///")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if _are_whole(values):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel(label)
    axes.set_ylabel("episodes")
    if summary.has_success and values:
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return _svg(figure, axes)


def _bins(values: Sequence[float]) -> list[float]:
    """Return bin edges: one bin per integer in a small range, else at most `MOST_BINS` bins."""
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
    # Equal numbers must give equal pages.
    with matplotlib.rc_context({"svg.hashsalt": "rllib_minestudio", "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


# ----------------------------------------------------- summaries and comparisons as terminal tables

COLUMNS = ("episodes", "successes", "rate", f"{CONFIDENCE:.0%} interval")


def summary_table(summary: Summary) -> Aligned:
    """Return a table with one row per task, and a total row if there are several."""
    notes = ""
    if summary.repeated_attempts:
        notes = f"environments failed; attempts repeated: {summary.repeated_attempts}"
    columns = (*COLUMNS, "return", "steps")
    rows = task_rows(summary)
    return Aligned(rows=rows, key="task", numbers=columns, title=_title(summary), notes=notes)


def task_rows(summary: Summary) -> list[tuple[str, ...]]:
    """Return per task its name, `COLUMNS`, return and length; of several tasks, also a total."""
    groups = dict(summary.tasks)
    if len(groups) > 1:
        groups["all"] = list(summary.episodes)
    return [
        (
            name,
            *rate_cells(Rate.of(episodes), summary.has_success),
            _mean_and_deviation([episode.undiscounted_return for episode in episodes]),
            f"{spread([episode.length for episode in episodes])['mean']:.0f}",
        )
        for name, episodes in groups.items()
    ]


def comparison_table(new: Summary, old: Summary, comparison: PairedComparison) -> Aligned:
    """Return a table with one row per evaluation, and the paired tests' results below."""
    rows = [(label, *numbers, policy) for label, policy, *numbers in comparison_rows(new, old)]
    return Aligned(
        rows=rows,
        key="",
        numbers=(*COLUMNS, "return"),
        texts=("policy",),
        title="comparison",
        notes=comparison.verdict,
    )


def comparison_rows(new: Summary, old: Summary) -> list[tuple[str, ...]]:
    """Return per evaluation "new" or "old", its policy, `COLUMNS`, and the return."""
    return [
        (
            label,
            policy_name(summary),
            *rate_cells(summary.rate, summary.has_success),
            _mean_and_deviation([episode.undiscounted_return for episode in summary.episodes]),
        )
        for label, summary in (("new", new), ("old", old))
    ]


def rate_cells(rate: Rate, known: bool) -> tuple[str, str, str, str]:
    """Return the cells of `COLUMNS`; dashes if success is not defined (`known` is False)."""
    if not known:
        return str(rate.num_episodes), "-", "-", "-"
    low, high = rate.interval
    return (
        str(rate.num_episodes),
        str(rate.num_yes),
        f"{rate.yes_rate:.1%}",
        f"{low:.1%} to {high:.1%}",
    )


def policy_name(summary: Summary) -> str:
    """Return a short name of the policy that was evaluated."""
    return short_name(summary.policy)


def short_name(policy: Mapping[str, Any]) -> str:
    """Return a short name of a policy: the last two parts of a checkpoint's path.

    Args:
        policy: Its identity.
    """
    checkpoint = policy.get("checkpoint")
    if checkpoint:
        return "/".join(Path(checkpoint).parts[-2:])
    return str(policy.get("name") or "policy")


def _mean_and_deviation(values: Sequence[float]) -> str:
    found = spread(values)
    return f"{found['mean']:.2f} ± {found['std']:.2f}"


def _title(summary: Summary) -> str:
    success = summary.filter or ("the task's own" if summary.has_success else "not defined")
    return f"{policy_name(summary)}   seed {summary.seed}   success: {success}"


# --------------------------------------------------------------------------------- videos in a page


class VideoSources:
    """Values of `src` for a page's videos: embedded data while there is room, then links.

    Attributes:
        folder: Folder of the page, which links are relative to.
        room: Bytes of video that can still be embedded.
    """

    def __init__(self, folder: Path, max_embedded: int) -> None:
        """Start a page in `folder` that embeds at most `max_embedded` bytes of video."""
        self.folder = folder
        self.room = max_embedded

    def source(self, video: Path) -> str:
        """Return the `src` of one more video, an mp4 file; a large one is embedded as a small film.

        After the first that does not fit, all are linked.
        """
        if self.room > 0:
            film = small_film(video)
            if len(film) <= self.room:
                self.room -= len(film)
                return "data:video/mp4;base64," + base64.b64encode(film).decode()
            self.room = 0
        return quote(Path(os.path.relpath(video, self.folder)).as_posix())


# ------------------------------------------------------------------------- learning curves as a PNG
# Of one run, the trials of a search, or several seeds.

COLOUR = "#2a7a3b"
"""Colour of a single curve."""

MANY = 3
"""With at least this many curves, the legend is placed beside the plot."""

WIDTH, WIDTH_WITH_LABELS = 7.0, 9.0
"""In inches."""


FAR_BELOW = 1.5
"""A level higher than this multiple of all curves would squash them at the bottom; it is not
drawn."""


@dataclass(frozen=True)
class LearningCurve:
    """Mean episode return over time, of one run or of several that differ only by chance.

    Attributes:
        label: Its name in the legend.
        env_steps: Environment steps sampled so far, at each point.
        returns: Mean return of the recent episodes, at each point.
        lowest: Minimum of the values averaged in `returns` at each point (episodes of one run, or
            means of several runs); None if unknown.
        highest: Their maximum, likewise.
    """

    label: str
    env_steps: Sequence[float]
    returns: Sequence[float]
    lowest: Sequence[float] | None = None
    highest: Sequence[float] | None = None


def mean_and_range(label: str, runs: Sequence[LearningCurve]) -> LearningCurve:
    """Combine several runs into one curve, over the steps that all of them have reached.

    Args:
        label: Label of the new curve.
        runs: At least one, each with at least one point and increasing steps.
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
        title: Title of the plot.
        curves: At least one.
        path: Destination; its folder must exist.
        random_policy: Mean return of the random policy, drawn as a horizontal line; None draws
            none.
        window: Number of recent episodes that each return averages, for the axis label; None omits
            it.
        highest_possible: Return that no episode exceeds, drawn as a horizontal line unless all
            curves are far below it. None omits it.
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
    top = FAR_BELOW * max(float(np.max(_highest(curve))) for curve in curves)
    if highest_possible is not None and highest_possible <= top:
        label = f"reward limit ({highest_possible:g})"  # of `max_reward_times`, not of the world
        axes.axhline(highest_possible, color="#777777", linestyle=":", label=label)
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
    """Add the legend above or beside the plot, where no curve crosses it.

    Args:
        figure: The figure.
        axes: Its axes, with all curves and levels.
        beside: Whether there are too many labels for a line above the plot. Labels that are too
            long for it go beside the plot as well.
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
