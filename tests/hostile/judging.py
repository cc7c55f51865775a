"""Lets an attack happen in a process of its own, and says what came of it.

The processes are forked from a server that has everything imported, so that each takes less than
a tenth of a second. Harmless attacks by the thousand take turns in one such process instead; what
ends there otherwise than refused or accepted gets a process of its own. Time is the processor's,
so that a busy machine changes no verdict.
"""

from __future__ import annotations

import gc
import math
import os
import pickle
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from tests.processes import ROOT, Process, python

REFUSED, ACCEPTED = "refused", "accepted"
TRACEBACK, CRASH, SLOW, LARGE = "traceback", "crash", "slow", "large"

MOST_SECONDS, MOST_BYTES = 2.0, 500 * 1024**2
"""What docs/checkpoints.md promises, on a processor that counts as fast as `COUNTS_PER_S`."""
COUNTS_PER_S = 40_000_000
LAST_SECOND = 8
"""Seconds of the processor after which an attack is ended."""
PATIENCE = 60.0
"""Seconds of wall time after which an attack counts as hanging that does not use the processor."""


TURNS = 25
"""Attacks that take turns in one process. What they leave in memory counts for those after them,
so that the most that one may take is never counted too low."""

Attack = tuple[Callable[[Any], str], Any]


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
    most_bytes: int = MOST_BYTES


@cache
def _server() -> Process:
    """Start the process that has warmed up and forks for each attack."""
    folders = [str(Path(__file__).parent), str(ROOT), os.environ.get("PYTHONPATH")]
    return python(
        *("-c", "import judging; judging.serve()"),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
        stderr=2,
        text=False,
    )


def serve() -> None:
    """Read (attack, argument) from standard input, and write verdicts, until there are no more."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an attack prints is no reply
    import_module("hostile_preload")
    gc.collect()
    gc.freeze()  # or each child would copy much of the memory just to look through it for garbage
    while True:
        try:
            attacks = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_endured(attacks), replies)
        replies.flush()


def judge(attack: Callable[[Any], str], argument: Any) -> Verdict:
    """Run `attack(argument)`, which returns a message or raises, and say how it ended.

    What was slow is tried again: workers that share the processor's caches slow each other down.
    """
    verdict = _judge(attack, argument)
    return _judge(attack, argument) if verdict.kind == SLOW else verdict


def _judge(attack: Callable[[Any], str], argument: Any) -> Verdict:
    (verdict,) = _judge_in_turns([(attack, argument)])
    return verdict


def _judge_in_turns(attacks: list[Attack]) -> list[Verdict]:
    """Run attacks one after the other in one process, up to the one that ends it."""
    server = _server()
    pickle.dump(attacks, server.stdin)
    server.stdin.flush()
    return [_measured(Verdict(*ended)) for ended in pickle.load(server.stdout)]


def _measured(verdict: Verdict) -> Verdict:
    if verdict.bytes > MOST_BYTES:
        return verdict._replace(kind=LARGE)
    if verdict.seconds > MOST_SECONDS and verdict.seconds > MOST_SECONDS * _slowness():
        return verdict._replace(kind=SLOW)
    return verdict


def _slowness() -> float:
    """How many times as long as usual the processor takes for anything now; at least 1."""
    counts, begin = 2_000_000, time.thread_time()
    for _ in range(counts):
        pass
    return max(1.0, (time.thread_time() - begin) * COUNTS_PER_S / counts)


def _endured(attacks: list[Attack]) -> list[tuple[Any, ...]]:
    """Fork, and wait for the child's verdicts or its end, which is the last verdict then."""
    receiver, sender = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        receiver.close()
        _suffer(sender, attacks)
    sender.close()
    verdicts: list[tuple[Any, ...]] = []
    with receiver:
        while len(verdicts) < len(attacks):
            if not receiver.poll(PATIENCE):
                verdicts.append((SLOW, f"still running after {PATIENCE:.0f} s"))
                break
            try:
                verdicts.append(receiver.recv())
            except (EOFError, OSError):  # the latter in the middle of a verdict
                verdicts.append(_end_of(os.waitpid(child, 0)[1]))
                return verdicts
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return verdicts


def _end_of(status: int) -> tuple[Any, ...]:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return SLOW, f"ended after {LAST_SECOND} s of the processor's time"
    return CRASH, f"ended with status {status}"


def judged(cases: Iterable[Case], folder: Path) -> Iterator[tuple[Case, Verdict]]:
    """Judge all cases, each in a folder and a process of its own."""
    for number, case in enumerate(cases):
        yield case, judge(case.attack, _prepared(case, folder / f"{number:03d}"))


def judged_in_turns(cases: Iterable[Case], folder: Path) -> Iterator[tuple[Case, Verdict]]:
    """Judge all cases, each in a folder of its own, `TURNS` in a process."""
    numbered = enumerate(cases)
    while batch := list(islice(numbered, TURNS)):
        waiting = [
            (case, (case.attack, _prepared(case, folder / f"{number:04d}")))
            for number, case in batch
        ]
        while waiting:
            verdicts = _judge_in_turns([attack for _, attack in waiting])
            for (case, attack), verdict in zip(waiting, verdicts, strict=False):
                alone = verdict.kind not in (REFUSED, ACCEPTED)
                yield case, judge(*attack) if alone else verdict
            waiting = waiting[len(verdicts) :]


def _prepared(case: Case, folder: Path) -> Any:
    folder.mkdir(parents=True)
    return case.prepare(folder)


def failures(cases: Iterable[Case], folder: Path) -> list[str]:
    """Say which cases did not end as they should."""
    return [
        f"{case.name}: {verdict}"
        for case, verdict in judged(cases, folder)
        if verdict.kind != case.expected or verdict.bytes > case.most_bytes
    ]


def count(cases: Iterable[Case], folder: Path) -> Counter[str]:
    """Count the verdicts on what should be refused; for the numbers before and after a change."""
    return Counter(v.kind for case, v in judged(cases, folder) if case.expected == REFUSED)


def _suffer(sender: Connection, attacks: list[Attack]) -> None:
    import faulthandler

    from rllib_minestudio.errors import MineStudioError

    faulthandler.disable()  # a crash is told by the exit code
    size = _used()[1]
    limit = size + 4 * 1024**3
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    for attack, argument in attacks:
        seconds = _used()[0]
        last_second = math.ceil(seconds) + LAST_SECOND
        resource.setrlimit(resource.RLIMIT_CPU, (last_second, resource.RLIM_INFINITY))
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
    os._exit(0)


def _used() -> tuple[float, int]:
    """Seconds of the processor, and the most bytes in memory so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
