"""Reads the cells of `learning.py`, and makes their table and plot."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from rllib_minestudio.evaluation.summary import Summary

EVALUATED = ("cows", "sheep", "empty")
"""The tasks of `learning.py`, each of them a column."""

HEADING = """\
Returns are means over the evaluated episodes, then over the seeds, ± the standard deviation over
the seeds, which is absent if there is only one seed. A dash means not evaluated (`--tasks`).
Seconds are of training one arm with one seed, two runs side by side. docs/results.md interprets
the table.
"""


class Cell(NamedTuple):
    """What one run of one arm gave.

    Attributes:
        returns: Task -> mean return over the evaluated episodes, of the tasks that were evaluated.
        curve: Environment steps and mean return of the recent episodes, while training.
        seconds: Training time.
    """

    returns: dict[str, float]
    curve: tuple[tuple[float, float], ...]
    seconds: float


def read(folder: Path) -> Cell:
    """Read a cell's results."""
    lines = [
        json.loads(line)
        for file in sorted(folder.glob("training/**/result.json"))
        for line in file.read_text().splitlines()
    ]
    return Cell(
        {
            task: mean_return(Summary.load(folder / task))
            for task in EVALUATED
            if (folder / task / "summary.json").exists()
        },
        tuple(point for line in lines if (point := curve_point(line)) is not None),
        lines[-1]["time_total_s"] if lines else 0.0,
    )


def mean_return(summary: Summary) -> float:
    """Mean over the episodes."""
    return statistics.mean(episode.undiscounted_return for episode in summary.episodes)


def curve_point(result: dict[str, Any]) -> tuple[float, float] | None:
    """Steps and return of one iteration; None while no episode has ended."""
    value = result.get("env_runners", {}).get("episode_return_mean")
    return None if value is None else (result["num_env_steps_sampled_lifetime"], value)


def report(
    folders: Mapping[str, Path],
    described: Mapping[str, str],
    plotted: Sequence[str],
    out: Path,
    docs: Path | None,
) -> None:
    """Print and write the table and the plot of these arms' cells, as far as they are there.

    Args:
        folders: Arm -> where the folders of its seeds are.
        described: Arm -> what it is.
        plotted: The arms with a curve.
        out: Where table and plot go.
        docs: Where the plot goes, too; None: nowhere else.
    """
    cells = {
        name: [read(path.parent.parent) for path in sorted(folder.glob("seed_*/cows/summary.json"))]
        for name, folder in folders.items()
    }
    cells = {name: found for name, found in cells.items() if found}
    rows = [
        (
            name,
            str(len(found)),
            spread(found, "cows", ".2f"),
            spread(found, "sheep", ".2f"),
            spread(found, "empty", ".0f"),
            f"{statistics.mean(cell.seconds for cell in found):.0f}",
        )
        for name, found in cells.items()
    ]
    header = ("arm", "seeds", "cows", "sheep", "metres without an animal", "seconds")
    table = Table(*header)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    lines = [
        (*header, "what it is"),
        ("---",) * (len(header) + 1),
        *((*row, described[row[0]]) for row in rows),
    ]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    curves = {name: cells[name] for name in plotted if name in cells}
    (out / "table.md").write_text(f"{HEADING}\n{provenance()}\n\n{text}")
    draw(curves, out / "learning.png")
    if docs is not None:
        draw(curves, docs / "images" / "prior.png")


def provenance() -> str:
    """The machine of the report, which should be that of the cells, and the day."""
    (model, *_) = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ] or ["unknown processor"]
    return f"{os.cpu_count()} cores, {model}; torch {torch.__version__}; {date.today()}."


def spread(cells: Sequence[Cell], task: str, form: str) -> str:
    """Mean return, and the standard deviation over the seeds if there are several."""
    values = [cell.returns[task] for cell in cells if task in cell.returns]
    if not values:
        return "-"
    text = f"{statistics.mean(values):{form}}"
    return f"{text} ± {statistics.stdev(values):{form}}" if len(values) > 1 else text


def draw(cells: dict[str, list[Cell]], path: Path) -> None:
    """Plot the returns while training, a line per arm: mean over the seeds, and their range."""
    figure = Figure(figsize=(8.0, 4.5), dpi=120, layout="constrained")
    axes = figure.subplots()
    for name, found in cells.items():
        curves = [cell.curve for cell in found if cell.curve]
        if not curves:
            level = statistics.mean(cell.returns["cows"] for cell in found)
            axes.axhline(level, color="#777777", linestyle="--", label=f"{name} ({level:.1f})")
            continue
        points = min(map(len, curves))
        steps = [curves[0][i][0] for i in range(points)]
        values = [[curve[i][1] for curve in curves] for i in range(points)]
        (line,) = axes.plot(steps, [statistics.mean(v) for v in values], label=name)
        low, high = [min(v) for v in values], [max(v) for v in values]
        axes.fill_between(steps, low, high, color=line.get_color(), alpha=0.12, linewidth=0)
    axes.set_xlabel("environment steps")
    axes.set_ylabel("cows killed per episode")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(0.0, 0.4))
    figure.savefig(path)
