"""What a mutant is, what became of it, and the table of docs/correctness.md."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

KILLED, TIMEOUT, SURVIVED, UNCOVERED = "killed", "timeout", "survived", "no covering test"
EQUIVALENT = "equivalent"
VERDICTS = (KILLED, TIMEOUT, EQUIVALENT, SURVIVED, UNCOVERED)


@dataclass
class Mutant:
    """A change of some lines of a file.

    Attributes:
        path: The file, relative to the repository.
        operator: cosmic-ray's name for the kind of change.
        occurrence: Which of the places of the file that this operator can change.
        line: Number of the first line that changes.
        before: The lines as they are, with their ends.
        after: What takes their place.
        covered_by: What the tests are known to run: the line itself, or, if no test is known to,
            its function or its file.
        tests: Ids of pytest, in the order in which they are worth trying.
    """

    path: str
    operator: str
    occurrence: int
    line: int
    before: str
    after: str
    covered_by: str = ""
    tests: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What tells it from the others drawn from the same code."""
        file = "/".join(Path(self.path).parts[-2:])
        return f"{file} {self.operator.removeprefix('core/')} {self.occurrence}"

    def mutate(self, source: str) -> str:
        """The file with the change.

        Raises:
            ValueError: The mutant was drawn from other code.
        """
        lines = source.splitlines(keepends=True)
        start, end = self.line - 1, self.line - 1 + len(self.before.splitlines())
        if "".join(lines[start:end]) != self.before:
            raise ValueError(f"{self.path}:{self.line} is not what it was when mutants were drawn")
        return "".join([*lines[:start], self.after, *lines[end:]])


@dataclass
class Verdict(Mutant):
    """A mutant and what became of it.

    Attributes:
        verdict: One of VERDICTS.
        test: Which test killed it.
        error: What the test raised.
        unfit: Tests that fail or hang without the mutant as well, and were left out.
        seconds: How long it took.
    """

    verdict: str = ""
    test: str = ""
    error: str = ""
    unfit: list[str] = field(default_factory=list)
    seconds: float = 0.0


def verdicts_in(file: Path) -> list[Verdict]:
    """The last verdict on each mutant."""
    lines = file.read_text().splitlines()
    return list({one.name: one for one in (Verdict(**json.loads(line)) for line in lines)}.values())


def survives(verdict: Verdict) -> bool:
    """Whether no test killed it."""
    return verdict.verdict not in (KILLED, TIMEOUT)


def table(verdicts: list[Verdict], equivalent: dict[str, str]) -> str:
    """The Markdown tables of docs/correctness.md.

    Args:
        verdicts: On all mutants that were drawn.
        equivalent: By name, why no input can tell a mutant from the original.

    Raises:
        ValueError: One that is said to be equivalent was killed, or not drawn.
    """
    known = {one.name: one for one in verdicts}
    for name in equivalent:
        if name not in known:
            raise ValueError(f"{name} is said to be equivalent, but was not drawn")
        if not survives(known[name]):
            raise ValueError(f"{name} is said to be equivalent, but {known[name].test} kills it")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in verdicts:
        file = "/".join(Path(one.path).parts[-2:])
        counts[file][EQUIVALENT if one.name in equivalent else one.verdict] += 1
    rows = sorted(counts.items())
    total = sum((count for _, count in rows), Counter())
    lines = [
        _row("File", "mutants", *VERDICTS, "killed of those not equivalent"),
        _row(*["---"] * (len(VERDICTS) + 3)),
    ]
    for name, count in [*((f"`{file}`", count) for file, count in rows), ("all", total)]:
        killed, judged = count[KILLED] + count[TIMEOUT], count.total() - count[EQUIVALENT]
        share = f"{100 * killed / judged:.1f} %" if judged else ""
        lines.append(_row(name, count.total(), *(count[verdict] for verdict in VERDICTS), share))
    left = [one for one in verdicts if survives(one) and one.name not in equivalent]
    if left:
        lines += ["", _row("Survivor", "line", "was", "became"), _row(*["---"] * 4)]
        lines += [_row(one.name, one.line, *_change(one)) for one in left]
    if equivalent:
        lines += ["", _row("Equivalent", "line", "was", "became", "why"), _row(*["---"] * 5)]
        for name, why in equivalent.items():
            lines.append(_row(name, known[name].line, *_change(known[name]), why))
    return "\n".join(lines) + "\n"


def _change(mutant: Mutant) -> tuple[str, str]:
    before, after = (" ".join(text.split()) for text in (mutant.before, mutant.after))
    return f"`{before}`", f"`{after}`" if after else "nothing"


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", r"\|") for cell in cells) + " |"
