"""The picture of the architecture: an observation's path from the engine to an optimizer step.

    python docs/architecture_picture.py [--out docs/images/architecture]

Run it again when a part of the path changes, which docs/architecture.md has in more detail. It is
narrow and its text large, so that it can be read on a phone.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

WIDTH, HEIGHT = 600, 790
"""In units that places and sizes below are in; y points down."""

SHOWN_WIDTH = 480
"""In pixels, of the SVG on a page that has room for it; the PNG is for slides."""

POINTS = SHOWN_WIDTH / WIDTH * 72 / 96
"""In a unit."""

COLUMNS = (22, 219, 416)
"""Left edges of the boxes."""

BOX_WIDTH, BOX_HEIGHT = 162, 104
ROWS = (38, 178, 332, 488, 628)
"""Upper edges of the boxes."""

EXPERIENCE, ACTION, WEIGHTS = "#2a7a3b", "#b45309", "#1d5fa8"
INK, GREY, PANEL = "#1f2328", "#6e7781", "#eef1f4"
LEGEND = (("experience", EXPERIENCE), ("action", ACTION), ("weights", WEIGHTS))


LOSS = (
    "policy: PPO, but",
    "corrected for",
    "staleness",
    "+ value",
    "+ KL to the prior:",
    "   keeps its skills",
    "− entropy: keeps",  # noqa: RUF001
    "   on exploring",
)


class Box(NamedTuple):
    """A part of the path: its place, its name, and what it does."""

    column: int
    row: int
    name: str
    lines: tuple[str, ...]
    rows: int = 1

    @property
    def left(self) -> float:
        """In units."""
        return COLUMNS[self.column]

    @property
    def top(self) -> float:
        """In units."""
        return ROWS[self.row]

    @property
    def height(self) -> float:
        """In units."""
        return ROWS[self.row + self.rows - 1] + BOX_HEIGHT - self.top


BOXES = (
    Box(0, 0, "Engine", ("a tick of 1/20 s,", "then a frame as", "the agent sees it")),
    Box(1, 0, "Callbacks", ("mask keys, give", "rewards, end the", "episode")),
    Box(2, 0, "MineStudioEnv", ("gymnasium: uint8", "frames out, VPT's", "tokens in")),
    Box(2, 1, "Env pool", ("batches envs that", "are ready, and", "replaces failures")),
    Box(1, 1, "VPT RLModule", ("samples actions;", "a memory for", "each environment")),
    Box(0, 1, "Fragment", ("T steps, memory", "at their start,", "prior's latents")),
    Box(0, 2, "Replay buffer", ("in the driver:", "bounds reuse", "and staleness")),
    Box(0, 3, "Batch", ("of sequences,", "loaded one", "iteration ahead")),
    Box(0, 4, "Targets", ("values and GAE;", "bootstraps at", "truncations")),
    Box(1, 4, "Chunks", ("truncated BPTT,", "memory carried", "on to the next")),
    Box(2, 3, "Loss", LOSS, rows=2),
    Box(1, 3, "Optimizer step", ("AdamW: gradients", "accumulated over", "minibatches")),
    Box(1, 2, "Weights", ("and their version,", "pulled before", "each rollout")),
    Box(2, 2, "Evaluation", ("of fixed episodes:", "success rates,", "videos")),
)
BOX = {box.name: box for box in BOXES}

PANELS = (
    ("env runners: any number", 0, 1),
    ("learners: any number", 3, 4),
)
"""What runs in one process, and the rows that it spans."""


def main() -> None:
    """Draw it, and write it as SVG and as PNG."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    folder = Path(__file__).parent / "images"
    parser.add_argument("--out", type=Path, default=folder / "architecture", help="without suffix")
    out = parser.parse_args().out
    # The same file each time: no date, and ids that derive from the name.
    matplotlib.rcParams.update({"svg.hashsalt": out.stem, "svg.fonttype": "path"})
    figure = Figure(figsize=(WIDTH * POINTS / 72, HEIGHT * POINTS / 72), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.set_axis_off()
    draw(axes)
    figure.savefig(out.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(out.with_suffix(".png"), dpi=240, pil_kwargs={"optimize": True})


def draw(axes: Axes) -> None:
    """Draw panels, boxes, arrows and legend."""
    for label, first, last in PANELS:
        top, bottom = ROWS[first] - 30, ROWS[last] + BOX_HEIGHT + 14
        rounded(axes, 8, top, WIDTH - 16, bottom - top, facecolor=PANEL, edgecolor=PANEL)
        write(axes, COLUMNS[2] + BOX_WIDTH, top + 15, label, size=15.5, color=GREY, ha="right")
    for box in BOXES:
        draw_box(axes, box)
    for source, target in (("Engine", "Callbacks"), ("Callbacks", "MineStudioEnv")):
        exchange(axes, BOX[source], BOX[target])
    exchange(axes, BOX["MineStudioEnv"], BOX["Env pool"])
    exchange(axes, BOX["Env pool"], BOX["VPT RLModule"])
    path = ("VPT RLModule", "Fragment", "Replay buffer", "Batch", "Targets", "Chunks", "Loss")
    for source, target in itertools.pairwise(path):
        connect(axes, BOX[source], BOX[target], EXPERIENCE)
    connect(axes, BOX["Loss"], BOX["Optimizer step"], EXPERIENCE)
    for source, target in (
        ("Optimizer step", "Weights"),
        ("Weights", "VPT RLModule"),
        ("Weights", "Evaluation"),
    ):
        connect(axes, BOX[source], BOX[target], WEIGHTS)
    for column, (label, colour) in enumerate(LEGEND):
        left, y = COLUMNS[column], HEIGHT - 20
        arrow(axes, (left, y), (left + 34, y), colour)
        write(axes, left + 44, y, label, size=15.5)


def draw_box(axes: Axes, box: Box) -> None:
    """Draw a box with its text."""
    rounded(axes, box.left, box.top, BOX_WIDTH, box.height, facecolor="white", edgecolor="#afb8c1")
    write(axes, box.left + 10, box.top + 19, box.name, size=16, weight="bold")
    for number, line in enumerate(box.lines):
        write(axes, box.left + 10, box.top + 44 + 21 * number, line, size=15.5)


def rounded(axes: Axes, left: float, top: float, width: float, height: float, **style: str) -> None:
    """Draw a rectangle with round corners."""
    shape = "round,pad=0,rounding_size=6"
    axes.add_patch(
        FancyBboxPatch((left, top), width, height, boxstyle=shape, lw=1.2 * POINTS, **style)
    )


def write(axes: Axes, x: float, y: float, text: str, size: float, **style: str) -> None:
    """Write a line, centred vertically on y."""
    style = {"color": INK, "va": "center_baseline", **style}
    axes.text(x, y, text, fontsize=size * POINTS, **style)


def exchange(axes: Axes, source: Box, target: Box) -> None:
    """Connect two boxes both ways: observations go on, actions come back."""
    connect(axes, source, target, EXPERIENCE, shift=-12)
    connect(axes, target, source, ACTION, shift=12)


def connect(axes: Axes, source: Box, target: Box, colour: str, shift: float = 0) -> None:
    """Draw an arrow between neighbours, at the middle of the sides that face each other."""
    if source.column == target.column:
        x = source.left + BOX_WIDTH / 2 - shift
        down = source.top < target.top
        upper, lower = (source, target) if down else (target, source)
        ends = [(x, upper.top + upper.height), (x, lower.top)]
        forwards = down
    else:
        # Loss is two rows high: the row of the lower of the two boxes is where both are.
        y = max(source.top, target.top) + BOX_HEIGHT / 2 + shift
        forwards = source.column < target.column
        before, after = (source, target) if forwards else (target, source)
        ends = [(before.left + BOX_WIDTH, y), (after.left, y)]
    start, end = ends if forwards else ends[::-1]
    arrow(axes, start, end, colour)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    """Draw an arrow."""
    head = "-|>,head_length=6,head_width=4"
    style = {
        "arrowstyle": head,
        "color": colour,
        "lw": 2.4 * POINTS,
        "shrinkA": 0,
        "shrinkB": POINTS,
    }
    axes.add_patch(FancyArrowPatch(start, end, mutation_scale=POINTS, joinstyle="miter", **style))


if __name__ == "__main__":
    main()
