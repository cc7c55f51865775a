"""What tests of several parts share: a local Ray, a device, whose turn it is, and their order."""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import gc
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    # The workers share the cores. Set before torch and numba are imported, and for child processes.
    for _variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(_variable, "1")

if "RLLIB_MINESTUDIO_CONFIG" not in os.environ:
    # The key by which this user's files are recognised: one for all processes of this run.
    os.environ["RLLIB_MINESTUDIO_CONFIG"] = tempfile.mkdtemp(prefix="rllib_minestudio_config_")
    atexit.register(shutil.rmtree, os.environ["RLLIB_MINESTUDIO_CONFIG"], ignore_errors=True)

EARLY = ("docs", "policies", "checkpoints", "recordings", "reading", "outputs")
"""Folders whose quick tests need no machine code; on a new machine it is being made meanwhile."""
TURNS = 8
"""Commits after which each case of a sweep has had its turn, on average."""


def pytest_report_header(config: pytest.Config) -> str:
    """Say which part of the sweeps is run, if they are."""
    turn = turn_of(config)
    return "sweeps: " + ("whole" if turn == slice(None) else f"part {turn.start} of {TURNS}")


def pytest_configure(config: pytest.Config) -> None:
    """For workers that are about to start: have what they fork from imported and compiled."""
    if getattr(config.option, "numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        from tests.processes import address

        threading.Thread(target=address, daemon=True).start()


def pytest_sessionstart() -> None:
    """In a worker: leave behind where it was if it crashes, as its own output is lost."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        faulthandler.enable(file=_crash_of(worker).open("w"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show where workers crashed, at the end, which is the part of a log that is kept."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        for file in sorted(_crash_of("*").parent.glob(_crash_of("*").name)):
            if text := file.read_text():
                terminalreporter.section(f"crash of a worker ({file.name})")
                terminalreporter.write_line(_shortened(text))
                terminalreporter.write_line(_last_words_of_ray(file.with_suffix(".ray")))


def _shortened(crash: str) -> str:
    """A crash with the thread that had it first, and stacks that several threads have said once."""
    threads: dict[str, list[str]] = {}
    for block in crash.split("\n\n"):
        head, _, stack = block.partition("\n")
        threads.setdefault(stack, []).append(head)
    blocks = [
        f"{len(heads)} times: {heads[-1]}\n{stack}" if len(heads) > 1 else f"{heads[0]}\n{stack}"
        for stack, heads in threads.items()
    ]
    return "\n\n".join(sorted(blocks, key=lambda block: "Current thread" not in block))


def _last_words_of_ray(place: Path) -> str:
    """What Ray's part of the worker wrote last, such as the check that failed."""
    if not place.is_file():
        return ""
    log = Path(place.read_text())
    lines = [
        line
        for file in sorted(log.parent.glob(log.name))
        for line in file.read_text(errors="replace").splitlines()
        if line.startswith("[")  # the others are statistics
    ][-LAST_LINES:]
    return "\n".join(["Ray's log of the worker ends:", *lines])


LAST_LINES = 40
"""Lines of Ray's log that are shown after a crash: a failed check has a stack of some twenty."""


@pytest.hookimpl(trylast=True)  # after the fixtures of a module have ended
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Between two files, give memory back: a learner in this process tells malloc to keep it."""
    global _resident
    if nextitem is not None and nextitem.path != item.path:
        resident = _resident_bytes()
        if resident > _resident + GROWTH:
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
            _resident = _resident_bytes()


GROWTH = 300 * 2**20
"""Bytes by which a worker may grow before it looks for what can be given back."""
_resident = 0
"""What was left of a worker's memory when it last did."""


def _resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except FileNotFoundError:
        return 0  # not on Linux


def _crash_of(worker: str) -> Path:
    return Path(os.environ["RLLIB_MINESTUDIO_CONFIG"]) / f"crash-of-{worker}.txt"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is marked `gpu` where there is none."""
    if item.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not this commit's part of the sweeps, and sort what is left."""
    kept = this_turn(items, turn_of(config))
    remaining = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in remaining])
    items[:] = in_order(kept, workers=int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def this_turn(items: list[pytest.Item], turn: slice) -> list[pytest.Item]:
    """Those whose turn it is: of a sweep with a test for each case, those of the slice.

    A sweep whose tests are fewer than turns tries a part of the cases in each: its fixture `turn`.
    """
    kept = []
    for _, group in groupby(items, lambda item: (item.path, getattr(item, "originalname", item))):
        cases = list(group)
        takes_turns = len(cases) >= TURNS and cases[0].get_closest_marker("sweep") is not None
        kept += cases[turn] if takes_turns else cases
    return kept


def in_order(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Give one of pytest-xdist's workers Ray's tests, and let all begin with the longest.

    With `--dist worksteal` each worker gets as many items, one stretch of the list; who is done
    early takes from the end of another's. The stretches begin where this puts them, but for a few
    quick ones that come first.
    """
    if workers == 1:
        return items
    files = [list(group) for _, group in groupby(items, lambda item: item.path)]
    with_ray = [file for file in files if any(map(uses_ray, file))]
    without = [file for file in files if file not in with_ray]
    long = [file for file in without if any(map(is_long, file))]
    quick = [file for file in without if file not in long]
    early = [file for file in quick if file[0].path.parent.name in EARLY]
    stretches: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for number, file in enumerate(early):
        stretches[number % workers] += file
    for file in sorted(with_ray, key=lambda file: not any(map(is_long, file))):
        stretches[0] += file
    for number, file in enumerate(long):
        stretches[1 + number % (workers - 1)] += file
    for file in quick:
        if file not in early:
            min(stretches, key=len).extend(file)
    return [item for stretch in stretches for item in stretch]


def is_long(item: pytest.Item) -> bool:
    """Whether a test is marked as long."""
    return any(item.get_closest_marker(name) for name in ("slow", "sweep"))


def uses_ray(item: pytest.Item) -> bool:
    """Whether a test is one of those that share a Ray."""
    return "local_ray" in getattr(item, "fixturenames", ())


def turn_of(config: pytest.Config) -> slice:
    """The cases of a sweep that are tried: all with `-m sweep`, otherwise the commit's part."""
    if config.getoption("markexpr") == "sweep":
        return slice(None)
    command = ["git", "rev-parse", "HEAD"]
    folder = Path(__file__).parent
    commit = subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout.strip()
    return slice(int(commit or "0", 16) % TURNS, None, TURNS)


@pytest.fixture(scope="session")
def turn(pytestconfig: pytest.Config) -> slice:
    """Which cases of a sweep are tried; see `turn_of`."""
    return turn_of(pytestconfig)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The processor, and a CUDA device that multiplies float32 as learners of float32 let it."""
    import torch

    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    return request.param


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """Ray on this machine only, for all tests of a session; its workers are forked."""
    import ray  # most tests do without

    from rllib_minestudio.experiments.ray_session import fewer_processes
    from tests.processes import fork_ray_workers

    fork_ray_workers()
    with fewer_processes():
        ray.init(
            address="local",  # whatever else runs on this machine
            num_cpus=4,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=200 * 1024**2,
            _node_ip_address="127.0.0.1",
        )
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        logs = Path(ray._private.worker._global_node.get_logs_dir_path())
        log = logs / f"python-core-driver-*_{os.getpid()}.log"
        _crash_of(worker).with_suffix(".ray").write_text(str(log))
    yield
    ray.shutdown()
