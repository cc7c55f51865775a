"""Lets an attack happen in a process of its own, and says what came of it.

The processes are forked from a server that has everything imported, so that each takes a few
hundredths of a second. Time is the processor's, so that a busy machine changes no verdict.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, NamedTuple

REFUSED, ACCEPTED = "refused", "accepted"
TRACEBACK, CRASH, SLOW, LARGE = "traceback", "crash", "slow", "large"

MOST_SECONDS, MOST_BYTES = 2.0, 500 * 1024**2
PATIENCE = 15.0
"""Seconds of wall time after which an attack counts as hanging."""

_CONTEXT = multiprocessing.get_context("forkserver")


def _start_server() -> None:
    """Start the server, which looks for what it imports in PYTHONPATH only."""
    before = os.environ.get("PYTHONPATH")
    package = Path(import_module("rllib_minestudio").__file__).parents[1]
    folders = [str(Path(__file__).parent), str(package), before]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    _CONTEXT.set_forkserver_preload(["hostile_preload"])
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


class Verdict(NamedTuple):
    kind: str
    message: str
    seconds: float = 0.0
    bytes: int = 0

    def __str__(self) -> str:
        return f"{self.kind} ({self.seconds:.1f} s, {self.bytes / 1e6:.0f} MB): {self.message}"


class Case(NamedTuple):
    """An attack: `prepare(folder)` makes the files and returns what `attack` gets."""

    name: str
    prepare: Callable[[Path], Any]
    attack: Callable[[Any], str]
    expected: str = REFUSED


def judge(attack: Callable[[Any], str], argument: Any) -> Verdict:
    """Run `attack(argument)`, which returns one of the kinds and a message, or raises."""
    _start_server()
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_suffer, args=(sender, attack, argument))
    process.start()
    sender.close()
    try:
        if not receiver.poll(PATIENCE):
            return Verdict(SLOW, f"still running after {PATIENCE:.0f} s")
        verdict = Verdict(*receiver.recv())
    except EOFError:
        process.join()
        return Verdict(CRASH, f"exit code {process.exitcode}")
    finally:
        process.kill()
        process.join()
        receiver.close()
    if verdict.bytes > MOST_BYTES:
        return verdict._replace(kind=LARGE)
    return verdict._replace(kind=SLOW) if verdict.seconds > MOST_SECONDS else verdict


def judged(cases: Iterable[Case], folder: Path) -> Iterator[tuple[Case, Verdict]]:
    """Judge all cases, each in a folder of its own."""
    for number, case in enumerate(cases):
        place = folder / f"{number:03d}"
        place.mkdir(parents=True)
        yield case, judge(case.attack, case.prepare(place))


def failures(cases: Iterable[Case], folder: Path) -> list[str]:
    """Say which cases did not end as they should."""
    return [
        f"{case.name}: {verdict}"
        for case, verdict in judged(cases, folder)
        if verdict.kind != case.expected
    ]


def count(cases: Iterable[Case], folder: Path) -> Counter[str]:
    """Count the verdicts on what should be refused; for the numbers before and after a change."""
    return Counter(v.kind for case, v in judged(cases, folder) if case.expected == REFUSED)


def _suffer(sender: Any, attack: Callable[[Any], str], argument: Any) -> None:
    import faulthandler

    from rllib_minestudio.errors import MineStudioError

    faulthandler.disable()  # a crash is told by the exit code
    limit = _used()[1] + 4 * 1024**3
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    seconds, size = _used()
    try:
        kind, message = ACCEPTED, str(attack(argument))
        if message.startswith((REFUSED, TRACEBACK)):
            kind, _, message = message.partition(": ")
    except MineStudioError as error:
        kind, message = REFUSED, str(error)
    except BaseException:
        kind, message = TRACEBACK, traceback.format_exc()[-1500:]
    now, peak = _used()
    sender.send((kind, message[:1500], now - seconds, max(0, peak - size)))
    sender.close()
    os._exit(0)


def _used() -> tuple[float, int]:
    """Seconds of the processor, and the most bytes in memory so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
