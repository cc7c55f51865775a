"""`rllib doctor`: reports what works on this machine, and how to fix the rest."""

from __future__ import annotations

import argparse
import importlib.metadata
from dataclasses import dataclass

from rich.text import Text

from rllib_minestudio.checkpoints.record import DISTRIBUTION
from rllib_minestudio.cli.flags import add_flags
from rllib_minestudio.doctor import CHECKS, MINECRAFT, TRAINING, Diagnosis, diagnose, is_needed
from rllib_minestudio.foundation.console import stdout
from rllib_minestudio.foundation.options import option

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
    json: bool = option(False, "Print JSON instead of lines.")


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
    """Print a line per check; what to do stands on a line of its own, to be copied whole."""
    width = max(len(d.check.name) for d in diagnoses)
    group = diagnoses[0].check.group
    for d in diagnoses:
        if d.check.group != group:
            group = d.check.group
            stdout.print()
        is_fatal = is_needed(d.check, needed)
        state, style = ("missing", "red") if is_fatal else ("no", "yellow")
        if d.health.ok:
            state, style = "ok", "green"
        stdout.print(
            Text.assemble((f"{state:<9}", style), f"{d.check.name:<{width}}  {d.health.detail}")
        )
        if not d.health.ok and d.health.fix:
            stdout.print(f"{'':<9}{d.health.fix}")
    stdout.print()
    if any(is_needed(d.check, needed) and not d.health.ok for d in diagnoses):
        stdout.print("Something that is needed does not work; see above.")
    else:
        stdout.print(f"Everything needed works ({', '.join(sorted(needed))}).")
