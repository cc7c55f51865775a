"""All stages in one table and one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from gpu_stages.processes import DONE, Outcome


def table(outcomes: Sequence[Outcome], title: str) -> Table:
    """A line for every row, and for every stage one that says what became of it."""
    made = Table(title=title)
    for column in ("stage", "what", "result", "beside", "goal"):
        made.add_column(column, overflow="fold")
    for outcome in outcomes:
        end = f"[b]{outcome.status}[/b] ({outcome.seconds:.0f} s)"
        made.add_row(f"[b]{outcome.stage}[/b]", escape(outcome.reason), end, "", "")
        for row in outcome.rows:
            made.add_row("", *map(escape, (row["what"], _result(row), _beside(row), _goal(row))))
        made.add_section()
    return made


def as_json(outcomes: Sequence[Outcome], **head: Any) -> dict[str, Any]:
    """The same as plain data, after what is to be said of the whole."""
    return {
        **head,
        "not_done": [outcome.stage for outcome in outcomes if outcome.status != DONE],
        "stages": {outcome.stage: outcome._asdict() for outcome in outcomes},
    }


def _result(row: Mapping[str, Any]) -> str:
    value = row["value"]
    return value if isinstance(value, str) else f"{_short(value)} {row['unit']}".strip()


def _beside(row: Mapping[str, Any]) -> str:
    if row["beside"] is None:
        return ""
    ratio = f", {row['beside'] / row['value']:.2f} times ours" if row["value"] else ""
    return f"{row['whose']}: {_short(row['beside'])} {row['unit']}{ratio}"


def _goal(row: Mapping[str, Any]) -> str:
    if row["met"] is None:
        return row["goal"]
    return f"{'ok' if row['met'] else 'MISSED'} ({row['goal']})"


def _short(value: float) -> str:
    """Four digits that count; no exponent where a number is of a usual size."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
