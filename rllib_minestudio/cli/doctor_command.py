"""`rllib doctor`: reports what works on this machine, and how to fix the rest."""

from __future__ import annotations

import argparse
import importlib.metadata
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from rllib_minestudio.cli.flags import add_flags
from rllib_minestudio.doctor import CHECKS, MINECRAFT, TRAINING, Diagnosis, diagnose, is_needed
from rllib_minestudio.foundation.console import stdout
from rllib_minestudio.foundation.options import option
from rllib_minestudio.foundation.provenance import DISTRIBUTION

NOT_WELL = 1
"""Exit status if something that is needed does not work."""

DESCRIPTION = """\
Test what works on this machine, and report how to fix what does not.

Every check runs in its own process, with a time limit, and never prompts. The exit
status is 0 if everything that --engine needs works, else 1.
"""

EXAMPLES = """\
examples:
  rllib doctor                        # for the embedded engine
  rllib doctor --engine minecraft     # for the real game as well
  rllib doctor --json                 # for a bug report or a script
"""


@dataclass(frozen=True, kw_only=True)
class DoctorRequest:
    """Options of `rllib doctor`."""

    engine: str = option(
        "voxel",
        "The engine that has to work: the embedded one or the real game.",
        choices=("voxel", "minecraft"),
    )
    json: bool = option(False, "Print JSON instead of a table.")


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib doctor`."""
    add_flags(parser, DoctorRequest, doctor)


def doctor(request: DoctorRequest) -> int:
    """Run `rllib doctor` and return the exit status."""
    diagnoses = diagnose(CHECKS)
    needed = {TRAINING, MINECRAFT} if request.engine == "minecraft" else {TRAINING}
    failures = [d for d in diagnoses if is_needed(d.check, needed) and not d.health.ok]
    if request.json:
        stdout.print_json(data=_report(diagnoses, needed), highlight=False)
    else:
        _print(diagnoses, needed)
    return NOT_WELL if failures else 0


def _report(diagnoses: list[Diagnosis], needed: set[str]) -> dict[str, object]:
    return {
        "ok": all(d.health.ok for d in diagnoses if is_needed(d.check, needed)),
        "version": importlib.metadata.version(DISTRIBUTION),
        "checks": [
            {
                "name": d.check.name,
                "group": d.check.group,
                "needed": is_needed(d.check, needed),
                **d.health._asdict(),
                "seconds": round(d.seconds, 1),
            }
            for d in diagnoses
        ],
    }


def _print(diagnoses: list[Diagnosis], needed: set[str]) -> None:
    table = Table(title="rllib doctor", title_justify="left")
    for name in ("", "check", "found", "what to do"):
        table.add_column(name, overflow="fold")
    group = diagnoses[0].check.group
    for d in diagnoses:
        if d.check.group != group:
            group = d.check.group
            table.add_section()
        if d.health.ok:
            state = Text("ok", "green")
        else:
            is_fatal = is_needed(d.check, needed)
            state = Text("missing", "red") if is_fatal else Text("no", "yellow")
        fix = "" if d.health.ok else d.health.fix
        table.add_row(state, d.check.name, d.health.detail, fix)
    stdout.print(table)
    if any(is_needed(d.check, needed) and not d.health.ok for d in diagnoses):
        stdout.print("Something that is needed does not work; see above.")
    else:
        stdout.print(f"Everything needed works ({', '.join(sorted(needed))}).")
