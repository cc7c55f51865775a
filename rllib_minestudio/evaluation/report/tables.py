"""Summaries and comparisons as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from rllib_minestudio.evaluation.compare import PairedComparison
from rllib_minestudio.evaluation.evaluation_summary import CONFIDENCE, Rate, Summary, spread

COLUMNS = ("episodes", "successes", "rate", f"{CONFIDENCE:.0%} interval")


def summary_table(summary: Summary) -> Table:
    """One row per task, and one for all if there are several."""
    caption = None
    if summary.repeated_attempts:
        caption = f"environments failed; attempts repeated: {summary.repeated_attempts}"
    table = Table(title=Text(_title(summary)), title_justify="left", caption=caption)
    table.add_column("task")
    for name in (*COLUMNS, "return", "length"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in task_rows(summary):
        table.add_row(*map(Text, row))
    return table


def task_rows(summary: Summary) -> list[tuple[str, ...]]:
    """Per task: its name, `COLUMNS`, return and length; all together last if there are several."""
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


def comparison_table(new: Summary, old: Summary, comparison: PairedComparison) -> Table:
    """One row per evaluation, and what the paired tests say below."""
    table = Table(title="comparison", title_justify="left", caption=Text(comparison.verdict))
    table.caption_justify = "left"
    table.add_column("")
    table.add_column("policy")
    for name in (*COLUMNS, "return"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in comparison_rows(new, old):
        table.add_row(*map(Text, row))
    return table


def comparison_rows(new: Summary, old: Summary) -> list[tuple[str, ...]]:
    """Per evaluation: new or old, its policy, `COLUMNS`, and the return."""
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
    """The cells of `COLUMNS`; dashes where nothing says what a success is."""
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
    """A short name of what was evaluated: of a checkpoint's path, the last two parts."""
    checkpoint = summary.policy.get("checkpoint")
    if checkpoint:
        return "/".join(Path(checkpoint).parts[-2:])
    return str(summary.policy.get("name") or "policy")


def _mean_and_deviation(values: Sequence[float]) -> str:
    found = spread(values)
    return f"{found['mean']:.2f} ± {found['std']:.2f}"


def _title(summary: Summary) -> str:
    success = summary.filter or ("the task's own" if summary.has_success else "not defined")
    return f"{policy_name(summary)}   seed {summary.seed}   success: {success}"
