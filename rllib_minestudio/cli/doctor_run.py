"""`rllib doctor RUN`: whether a run was affected by what was mended since."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from rllib_minestudio.console import stdout
from rllib_minestudio.errata import NUMERICS, Stage, Verdict, judge

IS_AFFECTED = 1
"""Exit status when a run was affected by a defect."""


def examine(path: str, as_json: bool) -> int:
    """Print for every mended defect whether a run was affected by it.

    Args:
        path: A run's folder, one of its trials, or a checkpoint.
        as_json: Print JSON instead of a table per trial.

    Returns:
        The exit status.

    Raises:
        CheckpointError: There is no whole checkpoint at `path`.
    """
    from rllib_minestudio.experiments.outputs.training_history import stages_of

    trials = stages_of(Path(path))
    verdicts = {trial: judge(stages) for trial, stages in trials.items()}
    if as_json:
        stdout.print_json(data=_report(trials, verdicts), highlight=False)
    else:
        for trial, stages in trials.items():
            _print(trial, stages, verdicts[trial])
        _explain(chain.from_iterable(verdicts.values()))
    affected = any(verdict.affected for found in verdicts.values() for verdict in found)
    return IS_AFFECTED if affected else 0


def _report(
    trials: Mapping[Path, Sequence[Stage]], verdicts: Mapping[Path, Sequence[Verdict]]
) -> dict[str, Any]:
    return {
        "ok": not any(verdict.affected for found in verdicts.values() for verdict in found),
        "version": importlib.metadata.version("rllib-minestudio"),
        "numerics": NUMERICS,
        "trials": [
            {
                "path": str(trial),
                "revisions": _revisions(stages),
                "errata": [
                    {
                        "id": erratum.id,
                        "date": erratum.date,
                        "mended_in": erratum.mended_in,
                        "wrong": erratum.wrong,
                        "affected": affected,
                        "why": why,
                        "where": where,
                        "means": erratum.means if affected else "",
                    }
                    for erratum, affected, why, where in verdicts[trial]
                ],
            }
            for trial, stages in trials.items()
        ],
    }


def _print(trial: Path, stages: Sequence[Stage], verdicts: Sequence[Verdict]) -> None:
    stdout.print(str(trial))
    table = Table()
    table.add_column("")
    table.add_column("fixed defect", no_wrap=True)
    table.add_column("in this run", overflow="fold")
    for erratum, affected, why, where in verdicts:
        state = Text("affected", "red") if affected else Text("not affected", "green")
        place = f" ({where})" if where and len(stages) > 1 else ""
        table.add_row(state, erratum.id, why + place)
    stdout.print(table)
    revisions = " and ".join(map(str, _revisions(stages)))
    stdout.print(
        f"Trained by revision {revisions} of the learner's numerics, of which the newest is "
        f"{NUMERICS}; records read: {len(stages)}."
    )


def _explain(verdicts: Iterable[Verdict]) -> None:
    """Say once for each defect that affected a trial what it was, and what follows."""
    affected = {verdict.erratum.id: verdict.erratum for verdict in verdicts if verdict.affected}
    for erratum in affected.values():
        stdout.print(Text.assemble("\n", (erratum.id, "bold"), f", fixed {erratum.date}"))
        stdout.print(f"{erratum.wrong} {erratum.means}")
    if not affected:
        stdout.print("Not affected by any defect that was fixed.")


def _revisions(stages: Sequence[Stage]) -> list[int]:
    return sorted({stage.numerics for stage in stages})
