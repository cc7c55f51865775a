"""Records coverage, draws mutants, judges them, or prints the table."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from tools.mutants.covering import cover
from tools.mutants.drawing import draw
from tools.mutants.judging import HANG_S, judge
from tools.mutants.verdicts import Mutant, table, verdicts_in


def main() -> None:
    """Record coverage, draw, judge, or print the table."""
    parser = argparse.ArgumentParser(description="Mutation testing.")
    commands = parser.add_subparsers(dest="command", required=True)
    covering = commands.add_parser("cover", help="record which tests run which lines")
    covering.add_argument("folder", type=Path, help="gets coverage.json and durations.txt")
    covering.add_argument("--workers", type=int, default=2)
    drawing = commands.add_parser("draw", help="print mutants, one line of JSON each")
    drawing.add_argument("coverage", type=Path, help="coverage.json of `cover`")
    drawing.add_argument("--durations", type=Path, help="durations.txt of `cover`")
    drawing.add_argument("--count", type=int, default=300)
    drawing.add_argument("--seed", type=int, default=0)
    judging = commands.add_parser("judge", help="run each mutant's tests")
    judging.add_argument("mutants", type=Path, help="what `draw` printed")
    judging.add_argument("--out", type=Path, required=True, help="gets the verdicts, or has some")
    judging.add_argument("--workers", type=int, default=2)
    judging.add_argument("--limit", type=int, help="only so many mutants, the first")
    judging.add_argument("--hang-s", type=float, default=HANG_S, help="seconds for one test")
    judging.add_argument("--again", action="store_true", help="those not killed, once more")
    tabulating = commands.add_parser("table", help="print the table of docs/correctness.md")
    tabulating.add_argument("verdicts", type=Path, help="what `judge` wrote")
    tabulating.add_argument("equivalent", type=Path, help="names of mutants, and why")
    arguments = parser.parse_args()
    if arguments.command == "cover":
        cover(arguments.folder, arguments.workers)
    elif arguments.command == "draw":
        for mutant in draw(
            arguments.coverage, arguments.durations, arguments.count, arguments.seed
        ):
            print(json.dumps(asdict(mutant)))
    elif arguments.command == "judge":
        lines = arguments.mutants.read_text().splitlines()[: arguments.limit]
        mutants = [Mutant(**json.loads(line)) for line in lines]
        judge(mutants, arguments.out, arguments.workers, arguments.hang_s, arguments.again)
    else:
        import yaml

        equivalent = yaml.safe_load(arguments.equivalent.read_text()) or {}
        print(table(verdicts_in(arguments.verdicts), equivalent), end="")


if __name__ == "__main__":
    main()
