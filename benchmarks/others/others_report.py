"""Reads the cells of `run.py`, and makes their tables and plot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from rllib_minestudio.evaluation.aggregates import (
    improvement_interval,
    interquartile_mean,
    interquartile_mean_interval,
    probability_of_improvement,
)

US = "MineStudioPPO"
END_S = 60.0
"""A run is worth the mean return of the episodes that ended in its last minute."""
BUCKET_S = 30.0
BUSY = 0.05
"""Share of the machine's time that other programs may have had in a cell."""


class Cell(NamedTuple):
    """What is known of a run.

    Attributes:
        library: Which one.
        task: What it played.
        setting: Name of its learning rate and entropy bonus.
        seed: Its seed.
        seconds: How long it was.
        episodes: When each ended, in seconds since the first game began, its return and its steps.
        memory_mib: Most memory of all processes together.
        loop_s: Seconds of the same loop before and after, which tell how fast the machine was.
        foreign: Share of the machine's time that other programs had.
        day: When it was played.
    """

    library: str
    task: str
    setting: str
    seed: int
    seconds: float
    episodes: list[tuple[float, float, int]]
    memory_mib: float
    loop_s: tuple[float, float]
    foreign: float
    day: str

    @property
    def steps_per_s(self) -> float:
        """Steps of episodes that have ended, per second."""
        return sum(steps for _, _, steps in self.episodes) / self.seconds

    def save(self, file: Path) -> None:
        """Write it, with numbers as short as they may be."""
        kept = self._asdict()
        kept["episodes"] = [[round(t, 1), round(r, 3), n] for t, r, n in self.episodes]
        kept["loop_s"] = [round(s, 3) for s in self.loop_s]
        kept.update(memory_mib=round(self.memory_mib), foreign=round(self.foreign, 3))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(kept) + "\n")

    @classmethod
    def load(cls, file: Path) -> Cell:
        """Read one."""
        kept = json.loads(file.read_text())
        kept["episodes"] = [tuple(episode) for episode in kept["episodes"]]
        return cls(**{**kept, "loop_s": tuple(kept["loop_s"])})


def cell_file(folder: Path, phase: str, task: str, library: str, name: str) -> Path:
    """Return where a cell is kept."""
    words = f"{task}-{library}-{name}".lower().replace(",", "").replace(" ", "_")
    return folder / phase / f"{words}.json"


def score_of(cell: Cell) -> float:
    """Return what a run is worth at its end; 0 if no episode ended there."""
    last = [value for when, value, _ in cell.episodes if when > cell.seconds - END_S]
    return fmean(last) if last else 0.0


def report(folder: Path, scripts: Mapping[str, Path], docs: Path | None) -> None:
    """Print the tables of all cells that are there, and draw the plot.

    Args:
        folder: Where cells are.
        scripts: Library -> the script that its user writes.
        docs: Where the plot goes as well; None: nowhere.
    """
    for phase in ("tune", "compare"):
        cells = [Cell.load(file) for file in sorted(folder.glob(f"{phase}/*.json"))]
        for task in sorted({cell.task for cell in cells}):
            of_task = [cell for cell in cells if cell.task == task]
            print(f"\n## {phase}: {task}\n")
            print("\n".join(tuned(of_task) if phase == "tune" else compared(of_task, scripts)))
            if busy := [cell for cell in of_task if cell.foreign > BUSY]:
                print(f"\n{len(busy)} of {len(of_task)} cells had to share the machine.")
            if phase == "compare" and docs is not None:
                draw(of_task, docs / "images" / f"others_{task}.png")
    faults = [json.loads(file.read_text()) for file in sorted(folder.glob("faults/*.json"))]
    print("\n| a game | ends its process | hangs |\n| --- | --- | --- |")
    for library in scripts:
        found = {one["kind"]: one["outcome"] for one in faults if one["library"] == library}
        print(f"| {library} | {found.get('exit', '-')} | {found.get('hang', '-')} |")


def tuned(cells: Sequence[Cell]) -> list[str]:
    """A table of settings by libraries."""
    libraries = sorted({cell.library for cell in cells})
    found = {(cell.library, cell.setting): score_of(cell) for cell in cells}
    lines = [f"| rate, entropy | {' | '.join(libraries)} |", "| --- " * (len(libraries) + 1) + "|"]
    for setting in sorted({cell.setting for cell in cells}):
        values = [found.get((library, setting)) for library in libraries]
        shown = ["-" if value is None else f"{value:.2f}" for value in values]
        lines.append(f"| {setting} | {' | '.join(shown)} |")
    return lines


def compared(cells: Sequence[Cell], scripts: Mapping[str, Path]) -> list[str]:
    """A table of libraries; what is said of us in it compares our seeds with theirs."""
    scores = {
        library: [np.array([score_of(cell) for cell in cells if cell.library == library])]
        for library in scripts
        if any(cell.library == library for cell in cells)
    }
    names = ("seeds", "return", "we are better", "steps/s", "memory, GB", "lines", "loop, s")
    lines = [f"| library | {' | '.join(names)} |", "| --- " * (len(names) + 1) + "|"]
    for library, values in scores.items():
        own = [cell for cell in cells if cell.library == library]
        low, high = interquartile_mean_interval(values)
        better = "-"
        if library != US and US in scores:
            least, most = improvement_interval(scores[US], values)
            share = probability_of_improvement(scores[US], values)
            better = f"{share:.2f} [{least:.2f}, {most:.2f}]"
        row = (
            str(len(values[0])),
            f"{interquartile_mean(values):.2f} [{low:.2f}, {high:.2f}]",
            better,
            f"{median(cell.steps_per_s for cell in own):,.0f}",
            f"{median(cell.memory_mib for cell in own) / 1024:.1f}",
            str(lines_of_code(scripts[library])),
            f"{median(second for cell in own for second in cell.loop_s):.2f}",
        )
        lines.append(f"| {library} | {' | '.join(row)} |")
    return lines


def lines_of_code(script: Path) -> int:
    """Count the lines of a script that are neither empty nor its docstring."""
    return len([line for line in script.read_text().splitlines()[1:] if line.strip()])


def draw(cells: Sequence[Cell], file: Path) -> None:
    """Draw the return of each library over time: the mean of its seeds, and their range."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.add_subplot(xlabel="minutes", ylabel="return of an episode")
    for library in dict.fromkeys(cell.library for cell in cells):
        curves = np.array([curve(cell) for cell in cells if cell.library == library])
        minutes = (np.arange(curves.shape[1]) + 1) * BUCKET_S / 60
        (line,) = axes.plot(minutes, np.nanmean(curves, axis=0), label=library)
        low, high = np.nanmin(curves, axis=0), np.nanmax(curves, axis=0)
        axes.fill_between(minutes, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def curve(cell: Cell) -> list[float]:
    """Mean returns of the episodes that ended in each stretch of time; NaN where none did."""
    buckets: list[list[float]] = [[] for _ in range(round(cell.seconds / BUCKET_S))]
    for when, value, _ in cell.episodes:
        buckets[min(int(when / BUCKET_S), len(buckets) - 1)].append(value)
    return [fmean(bucket) if bucket else float("nan") for bucket in buckets]
