"""Draws a run's learning curve as a PNG."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure  # unlike pyplot, needs no display and keeps no state

from rllib_minestudio.whole_file import whole_file


@dataclass(frozen=True)
class LearningCurve:
    """One run's mean episode return over time.

    Attributes:
        name: Title of the picture.
        env_steps: Environment steps sampled so far, at each point.
        returns: Mean return of the recent episodes, at each point.
        random_policy: Mean return of the random policy, drawn as a level; None leaves it out.
    """

    name: str
    env_steps: Sequence[float]
    returns: Sequence[float]
    random_policy: float | None = None


def draw(curve: LearningCurve, path: Path) -> None:
    """Write a learning curve as a PNG file.

    Args:
        curve: What to draw.
        path: Where to; its folder must exist.
    """
    figure = Figure(figsize=(7.0, 4.0), dpi=120, layout="constrained")
    axes = figure.subplots()
    axes.plot(curve.env_steps, curve.returns, color="#2a7a3b", linewidth=2.0, label="agent")
    if curve.random_policy is not None:
        axes.axhline(
            curve.random_policy,
            color="#777777",
            linestyle="--",
            label=f"random policy ({curve.random_policy:.2f})",
        )
    axes.set_title(curve.name)
    axes.set_xlabel("environment steps")
    axes.set_ylabel("episode return")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(bottom=min(0.0, *curve.returns) if curve.returns else 0.0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="upper left")
    with whole_file(path) as partial:
        figure.savefig(partial, format="png")
