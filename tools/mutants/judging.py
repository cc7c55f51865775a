"""Judges mutants: a mutant is killed by the first of its tests that fails because of it.

It is written into a file of a clone, so that the processes that tests start (Ray's workers,
environments) run it, too. Importing PyTorch and Ray takes longer than most of the tests. A worker
therefore imports them once, and forks for each mutant a process that has not imported this package
yet.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections import defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import import_module, util
from pathlib import Path
from typing import Any, NoReturn

from tools.mutants.verdicts import (
    KILLED,
    SURVIVED,
    TIMEOUT,
    UNCOVERED,
    Mutant,
    Verdict,
    survives,
    verdicts_in,
)

ROOT = Path(__file__).parents[2]
HANG_S = 60.0
"""A test that takes longer hangs, if it takes less than half of this without the mutant."""
FIRST_CHUNK, GROWTH = 4, 3
"""How many tests a session of pytest gets at first, and how many times as many the next one."""
IMPORTED = (
    *("gymnasium", "hypothesis", "numba", "pytest", "scipy.stats", "tensorboardX", "torch._dynamo"),
    *("av", "ray.rllib.algorithms.ppo", "ray.tune", "torch.distributed", "torch.utils.data"),
)
"""What most tests import, and what does not import this package."""
SERVE = "from tools.mutants.judging import serve; serve()"
_PR_SET_CHILD_SUBREAPER = 36
"""See prctl(2)."""


def judge(mutants: list[Mutant], out: Path, workers: int, hang_s: float, again: bool) -> None:
    """Append a verdict on each mutant to a file, except for those that it has already.

    Args:
        mutants: As drawn from the commit that is checked out.
        out: Gets one line of JSON for each.
        workers: How many are judged at the same time.
        hang_s: See HANG_S.
        again: Judge those once more that were not killed, as after a change of the tests.
    """
    known = {one.name: one for one in verdicts_in(out)} if out.exists() else {}
    skipped = {name for name, one in known.items() if not (again and survives(one))}
    todo = deque(mutant for mutant in mutants if mutant.name not in skipped)
    print(f"{len(todo)} of {len(mutants)} to judge", file=sys.stderr)
    writing = threading.Lock()

    def next_one() -> Mutant | None:
        with contextlib.suppress(IndexError):
            return todo.popleft()
        return None

    def work(folder: Path) -> None:
        with _server(folder, hang_s) as server:
            assert server.stdin is not None and server.stdout is not None
            while mutant := next_one():
                server.stdin.write(json.dumps(asdict(mutant)) + "\n")
                server.stdin.flush()
                answer = server.stdout.readline()
                if not answer:
                    raise RuntimeError(f"What judged {mutant.name} has ended; see above.")
                verdict = Verdict(**json.loads(answer))
                with writing, out.open("a") as file:
                    file.write(answer)
                told = f"{verdict.name}: {verdict.verdict} {verdict.test}"
                print(f"{told} ({verdict.seconds:.1f} s), {len(todo)} left", file=sys.stderr)
            server.stdin.close()

    # A short name, as sockets in it have names of at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        folders = [Path(folder, str(worker)) for worker in range(min(workers, len(todo)))]
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, folders))


def _server(folder: Path, hang_s: float) -> subprocess.Popen[str]:
    """Start what judges mutants, in a clone of its own."""
    clone, temporary = folder / "clone", folder / "tmp"
    temporary.mkdir(parents=True)
    subprocess.run(["git", "clone", "--quiet", "--local", ROOT, clone], check=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(clone),
        "TMPDIR": str(temporary),
        "OMP_NUM_THREADS": "1",  # workers share the cores
        "NUMBA_NUM_THREADS": "1",
    }
    # Processes that tests start would compile every file anew.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.Popen(
        [sys.executable, "-c", SERVE, str(hang_s), str(temporary)],
        cwd=clone,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def serve() -> None:
    """Judge the mutants that come from standard input, in the clone that is the current folder."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what is imported may print
    # Orphans become children of this process, which can then end all that a test left running.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    found = util.find_spec("rllib_minestudio")
    if found is None or found.origin is None or not Path(found.origin).is_relative_to(Path.cwd()):
        raise RuntimeError(f"Tests would import {found and found.origin}, and not the clone.")
    for module in IMPORTED:
        import_module(module)
    assert not any(name.startswith("rllib_minestudio") for name in sys.modules)
    gc.collect()
    gc.freeze()  # or each child would copy much of the memory just to look through it for garbage
    judging = _Judge(float(sys.argv[1]), Path(sys.argv[2]))
    for line in sys.stdin:
        verdict = judging.judged(Mutant(**json.loads(line)))
        answers.write(json.dumps(asdict(verdict)) + "\n")
        answers.flush()


@dataclass
class _Outcome:
    """How tests ended: with a test that failed, that hung, or with none of them."""

    test: str = ""
    error: str = ""
    hung: bool = False


class _Judge:
    """Tries tests on mutants, each in a process that is forked from this one."""

    def __init__(self, hang_s: float, temporary: Path) -> None:
        self._hang_s, self._temporary = hang_s, temporary
        self._fit: dict[str, bool] = {}
        self._writes = itertools.count(1)
        self._parent = os.getppid()

    def judged(self, mutant: Mutant) -> Verdict:
        """Try the tests until one kills the mutant."""
        start = time.monotonic()
        verdict = Verdict(**asdict(mutant), verdict=SURVIVED if mutant.tests else UNCOVERED)
        tests = list(mutant.tests)
        while tests:
            outcome = self._with(mutant, tests)
            if not outcome.test:
                break
            if self._is_fit(outcome):
                verdict.verdict = TIMEOUT if outcome.hung else KILLED
                verdict.test, verdict.error = outcome.test, outcome.error
                break
            verdict.unfit.append(outcome.test)
            tests = [test for test in tests if test != outcome.test.partition("[")[0]]
        verdict.seconds = round(time.monotonic() - start, 2)
        return verdict

    def _with(self, mutant: Mutant, tests: list[str]) -> _Outcome:
        """Try tests on a mutant."""
        file = Path(mutant.path)
        original, status = file.read_text(), file.stat()
        try:
            file.write_text(mutant.mutate(original))
            # Python tells bytecode that is out of date by size and seconds, and a mutant may well
            # have the size of the one that was there a second ago.
            time_of_its_own = status.st_mtime + next(self._writes)
            os.utime(file, (time_of_its_own, time_of_its_own))
            return self._outcome(tests, self._hang_s)
        finally:
            file.write_text(original)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _is_fit(self, outcome: _Outcome) -> bool:
        """Whether the test passes without a mutant; if it hung, in half of the time."""
        if outcome.hung:
            return not self._outcome([outcome.test], self._hang_s / 2).test
        if outcome.test not in self._fit:
            self._fit[outcome.test] = not self._outcome([outcome.test], self._hang_s).test
        return self._fit[outcome.test]

    def _outcome(self, tests: list[str], hang_s: float) -> _Outcome:
        """Run tests in a process of their own, until one fails; leave nothing of it running."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _run(tests, writer)
        os.close(writer)
        try:
            return self._watch(child, reader, tests[0], hang_s)
        finally:
            _end_descendants()
            os.close(reader)
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary.mkdir(exist_ok=True)

    def _watch(self, child: int, reader: int, test: str, hang_s: float) -> _Outcome:
        """Follow what a child tells of its tests, of which the first is given."""
        unread, heard = b"", time.monotonic()
        status = None
        while True:
            while select.select([reader], [], [], 0 if status is not None else 0.05)[0]:
                received = os.read(reader, 2**16)
                if not received:
                    break
                *lines, unread = (unread + received).split(b"\n")
                heard = time.monotonic()
                for event in map(json.loads, lines):
                    test = event["test"]
                    if "error" in event:
                        return _Outcome(test, event["error"])
            if status is not None:
                ended = f"the process ended with status {status}"
                return _Outcome(test, ended) if status != 0 else _Outcome()
            if time.monotonic() - heard > hang_s:
                return _Outcome(test, f"no end within {hang_s:g} s", hung=True)
            if os.getppid() != self._parent:
                sys.exit("Who asked for the verdicts is gone.")
            status = _reaped().get(child)


def _run(tests: list[str], events: int) -> NoReturn:
    """Be the process that runs tests, and tell of them."""
    os.setsid()
    nothing, log = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)
    for old, new in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(old, new)
    # As under pytest's own program: children that multiprocessing spawns import nothing of this.
    sys.modules["__main__"] = types.ModuleType("__main__")
    import pytest

    reporter = _Reporter(events)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", ""]
    status = 1
    for chunk in _chunks(tests):
        status = int(pytest.main([*options, *chunk], plugins=[reporter]))
        if status == pytest.ExitCode.NO_TESTS_COLLECTED:  # their turn has not come
            status = 0
        if status:
            reporter.tell_of_end(status, chunk)
            break
    os._exit(status)


def _chunks(tests: list[str]) -> Iterator[list[str]]:
    """Split tests so that the first, which kill most of the mutants, need not wait for all."""
    start, size = 0, FIRST_CHUNK
    while start < len(tests):
        yield tests[start : start + size]
        start, size = start + size, size * GROWTH


class _Reporter:
    """A plugin of pytest that tells of each test when it starts, ends, or fails."""

    def __init__(self, events: int) -> None:
        self._events = events
        self.running = self._collected = self._error = ""

    def tell(self, **event: str) -> None:
        """Send an event."""
        os.write(self._events, json.dumps(event).encode() + b"\n")

    def tell_of_end(self, status: int, tests: list[str]) -> None:
        """Tell of a session that ended with an error that is no test's, as when imports raise."""
        first = next((test for test in tests if test.startswith(self._collected)), tests[0])
        self.tell(test=self.running or first, error=self._error or f"pytest ended with {status}")

    def pytest_collectreport(self, report: Any) -> None:
        """Note what could not be collected."""
        if report.failed:
            self._collected, self._error = report.nodeid, _message(report)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Name the test that runs from now on."""
        self.running = nodeid
        self.tell(test=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Tell that setup, call or teardown has ended, and how."""
        if report.failed:
            self.tell(test=report.nodeid, error=_message(report))
        else:
            self.tell(test=report.nodeid)

    def pytest_runtest_logfinish(self) -> None:
        """Forget the test."""
        self.running = ""


def _message(report: Any) -> str:
    """What a test raised, in a line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return " ".join(str(crash.message if crash else report.longrepr).split())[:200]


def _reaped() -> dict[int, int]:
    """Reap the children and orphans that have ended; returns their statuses.

    Tests wait for processes to vanish, whose parent is this one now.
    """
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    return ended


def _end_descendants() -> None:
    """Kill what descends from this process until there is nothing left."""
    while found := _descendants():
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        _reaped()
        time.sleep(0.01)


def _descendants() -> list[int]:
    """The processes that descend from this one, zombies included."""
    children = defaultdict(list)
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children[parent].append(int(status.parent.name))
    found, todo = [], [os.getpid()]
    while todo:
        todo += (of_one := children[todo.pop()])
        found += of_one
    return found
