"""The same games under other libraries: who learns what in twelve minutes on two cores?

    python benchmarks/others/run.py setup
    python benchmarks/others/run.py tune    [--libraries NAME ...] [--tasks NAME ...] [--cells N]
    python benchmarks/others/run.py compare [--libraries NAME ...] [--tasks NAME ...] [--cells N]
    python benchmarks/others/run.py faults  [--libraries NAME ...]
    python benchmarks/others/run.py report  [--docs]

`setup` makes the environment of those libraries that need one of their own, and compiles the engine
in all environments. `tune` trains every library on every task with the same six settings of
learning rate and entropy bonus, one seed each; `compare` takes each library's best setting and
trains it from five other seeds. `faults` lets a game end its process, or hang, in the middle of a
run. `report` writes the tables.

A library is a script of this folder, called as its users would call it, and stopped twelve minutes
after the first game began. All that is compared is measured from outside: the games' own diaries,
and the memory of its processes. What the report needs of a finished cell is a small file below
`cells/`, with which another checkout goes on: the same command plays only what is missing. As time
is what all have in common, cells need a machine with nothing else to do; each notes how fast the
machine was, and how busy with something else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from game import TASKS
from others_report import Cell, cell_file, report, score_of

HERE = Path(__file__).parent
CELLS = HERE / "cells"
SECONDS, START_S, TICK_S, MEMORY_EVERY_S, END_S = 720.0, 600.0, 0.5, 10.0, 20.0
LIBRARIES = {
    "MineStudioPPO": "minestudio_ppo.py",
    "sample-factory APPO": "sample_factory_appo.py",
    "RLlib PPO, LSTM": "rllib_ppo.py",
    "RLlib APPO, LSTM": "rllib_appo.py",
    "SB3 RecurrentPPO": "sb3_recurrent_ppo.py",
}
OWN_ENVIRONMENT = {"sample-factory APPO": "requirements-sample-factory.txt"}
"""Libraries that cannot share this package's environment, and what is installed for them."""
SETTINGS = {
    f"{lr:g}, {entropy:g}": (lr, entropy) for lr in (1e-3, 3e-4) for entropy in (4e-3, 1e-3, 1e-2)
}
"""Learning rate and weight of the entropy bonus, for everybody."""
TUNING_SEED, SEEDS = 100, range(5)
COMPILE = "from rllib_minestudio.env.voxel import kernel_cache; kernel_cache.warmup(print)"
"""Compiles the engine, which depends on the versions in an environment."""
FAULTS = ("exit", "hang")
FAULT_AFTER, FAULT_SECONDS, HANGS_S = 1_000, 180.0, 60.0


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("phase", choices=["setup", "tune", "compare", "faults", "report"])
    parser.add_argument("--libraries", nargs="+", default=list(LIBRARIES), choices=LIBRARIES)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--cells", type=int, default=None, help="play at most so many")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a cell")
    parser.add_argument("--folder", type=Path, default=CELLS, help="where cells are")
    parser.add_argument("--environments", type=Path, default=Path("results/others/environments"))
    parser.add_argument("--docs", action="store_true", help="write the plot into docs/, too")
    request = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    if request.phase == "setup":
        for library, requirements in OWN_ENVIRONMENT.items():
            set_up(request.environments / library, HERE / requirements)
        for python in {python_of(request, library) for library in LIBRARIES}:
            subprocess.run([python, "-c", COMPILE], check=True)
    elif request.phase == "report":
        report(
            request.folder,
            {name: HERE / script for name, script in LIBRARIES.items()},
            HERE.parents[1] / "docs" if request.docs else None,
        )
    elif request.phase == "faults":
        for library in request.libraries:
            for kind in FAULTS:
                fault(request, library, kind)
    else:
        missing = [cell for cell in planned(request) if not cell.file.exists()]
        for cell in missing[: request.cells]:
            train(request, cell)


class Planned(NamedTuple):
    """A cell that is to be played."""

    library: str
    task: str
    setting: str
    seed: int
    file: Path


def planned(request: argparse.Namespace) -> Iterator[Planned]:
    """Yield the cells of a phase in which all libraries advance alike.

    Raises:
        SystemExit: A library is to be compared that is not tuned completely.
    """
    for task in request.tasks:
        if request.phase == "tune":
            for setting in SETTINGS:
                for library in request.libraries:
                    file = cell_file(request.folder, "tune", task, library, setting)
                    yield Planned(library, task, setting, TUNING_SEED, file)
            continue
        best = {
            library: best_setting(request.folder, task, library) for library in request.libraries
        }
        for seed in SEEDS:
            for library, setting in best.items():
                file = cell_file(request.folder, "compare", task, library, f"seed {seed}")
                yield Planned(library, task, setting, seed, file)


def best_setting(folder: Path, task: str, library: str) -> str:
    """Return the setting with which a library ended best.

    Raises:
        SystemExit: Not all of them have been tried.
    """
    files = {name: cell_file(folder, "tune", task, library, name) for name in SETTINGS}
    missing = [name for name, file in files.items() if not file.exists()]
    if missing:
        raise SystemExit(f"tune {library!r} on {task} first; missing: {'; '.join(missing)}")
    return max(files, key=lambda name: score_of(Cell.load(files[name])))


# --------------------------------------------------------------------------- cells, played and kept


def train(request: argparse.Namespace, cell: Planned) -> None:
    """Play a cell, and keep what is known of it."""
    lr, entropy = SETTINGS[cell.setting]
    words = (
        "--task",
        cell.task,
        "--seed",
        str(cell.seed),
        "--lr",
        f"{lr}",
        "--entropy",
        f"{entropy}",
    )
    speed = seconds_of_a_loop()
    run = play(request, cell.library, words, request.seconds)
    if run.ended_by_itself:
        raise SystemExit(f"{cell.library} ended by itself:\n{run.last_words}")
    Cell(
        cell.library,
        cell.task,
        cell.setting,
        cell.seed,
        request.seconds,
        run.episodes,
        run.memory_mib,
        (speed, seconds_of_a_loop()),
        run.foreign,
        str(date.today()),
    ).save(cell.file)
    kept = Cell.load(cell.file)
    print(
        f"{cell.file.stem}: {score_of(kept):.2f} at the end, {kept.steps_per_s:.0f} steps/s",
        flush=True,
    )


def fault(request: argparse.Namespace, library: str, kind: str) -> None:
    """Let a game fail in the middle, and keep what came of the run."""
    file = cell_file(request.folder, "faults", "cow", library, kind)
    if file.exists():
        return
    words = ("--fault-after", str(FAULT_AFTER), "--fault", kind)
    run = play(request, library, words, FAULT_SECONDS)
    last = max((when for when, _, _ in run.episodes), default=0.0)
    if run.ended_by_itself:
        outcome = "ends"
    else:
        outcome = "hangs" if last < FAULT_SECONDS - HANGS_S else "goes on"
    file.parent.mkdir(parents=True, exist_ok=True)
    facts = {"library": library, "kind": kind, "outcome": outcome, "last_words": run.last_words}
    file.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{library}, {kind}: {outcome}", flush=True)


class Run(NamedTuple):
    """What a script did.

    Attributes:
        episodes: When each ended, in seconds since the first game began, its return and its steps.
        memory_mib: Most memory of all its processes together, shared pages counted once.
        foreign: Share of the machine's time that went to other programs.
        ended_by_itself: Whether it ended before its time.
        last_words: The end of what it printed.
    """

    episodes: list[tuple[float, float, int]]
    memory_mib: float
    foreign: float
    ended_by_itself: bool
    last_words: str


def play(request: argparse.Namespace, library: str, words: Sequence[str], seconds: float) -> Run:
    """Run a library's script for so long after its first game began, then end all its processes."""
    place = Path(tempfile.mkdtemp(prefix="others_"))
    diary, log = place / "diary", place / "log"
    command = [python_of(request, library), str(HERE / LIBRARIES[library])]
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONUNBUFFERED": "1"}
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "--diary", str(diary), *words],
            env=environment,
            cwd=place,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        began = wait_for_the_first_game(process, diary)
        tree = Tree(process.pid)
        while time.time() < began + seconds and process.poll() is None:
            tree.look()
            time.sleep(TICK_S)
        ended_by_itself = process.poll() is not None
        foreign = tree.foreign_share()
    finally:
        end(process)
    episodes = sorted(
        (when - began, value, steps)
        for when, value, steps in lines_of(diary)
        if value is not None and when <= began + seconds
    )
    last_words = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
    shutil.rmtree(place, ignore_errors=True)
    return Run(episodes, tree.memory_mib, foreign, ended_by_itself, last_words)


def wait_for_the_first_game(process: subprocess.Popen[bytes], diary: Path) -> float:
    """Return when the first game of a run began.

    Raises:
        SystemExit: None did.
    """
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        if begun := [when for when, *_ in lines_of(diary)]:
            return min(begun)
        time.sleep(TICK_S)
    raise SystemExit(f"no game began: {(diary.parent / 'log').read_text(errors='replace')[-3000:]}")


def lines_of(diary: Path) -> Iterator[list[Any]]:
    """Yield the lines of all games' diaries; the last one of a file may be cut off."""
    for file in diary.glob("*.jsonl"):
        for line in file.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(line)


class Tree:
    """A process and all that it has started: their memory, and whose the machine's time was."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._own: dict[int, float] = {}
        self._before, self._busy_before = time.monotonic(), busy_s()
        self._next = 0.0
        self.memory_mib = 0.0
        self.look()
        self._own_before = sum(self._own.values())

    def look(self) -> None:
        """Note what the processes use now."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + MEMORY_EVERY_S
        total = 0
        with contextlib.suppress(psutil.Error):
            for process in [self._root, *self._root.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    times = process.cpu_times()
                    self._own[process.pid] = times.user + times.system
                    total += process.memory_full_info().pss
        self.memory_mib = max(self.memory_mib, total / 2**20)

    def foreign_share(self) -> float:
        """Share of all cores' time since the beginning that other programs took."""
        self._next = 0.0
        self.look()
        own = sum(self._own.values()) - self._own_before
        whole = (time.monotonic() - self._before) * (os.cpu_count() or 1)
        return max(0.0, (busy_s() - self._busy_before - own) / whole)


def busy_s() -> float:
    """Seconds that the machine's cores have been busy, those that its host took included."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.steal)


def seconds_of_a_loop() -> float:
    """How fast the machine is now: the median of five loops."""
    taken = []
    for _ in range(5):
        begin, total = time.perf_counter(), 0
        for number in range(3_000_000):
            total += number
        taken.append(time.perf_counter() - begin)
    return sorted(taken)[2]


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    tree: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(process.pid)
        tree = [root, *root.children(recursive=True)]
    for one in tree:
        with contextlib.suppress(psutil.Error):
            one.terminate()
    _, alive = psutil.wait_procs(tree, END_S)
    for one in alive:
        with contextlib.suppress(psutil.Error):
            one.kill()
    process.wait()


# ----------------------------------------------------------------------------------- environments


def python_of(request: argparse.Namespace, library: str) -> str:
    """Return the interpreter that a library runs in.

    Raises:
        SystemExit: It is not set up.
    """
    if library not in OWN_ENVIRONMENT:
        return sys.executable
    python = (request.environments / library / "bin" / "python").absolute()
    if not python.exists():
        raise SystemExit(f"{library} has no environment yet: run.py setup")
    return str(python)


def set_up(folder: Path, requirements: Path) -> None:
    """Make an environment with what is listed, and this package without what it asks for."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet"]
    subprocess.run([*pip, "-r", str(requirements)], check=True)
    subprocess.run([*pip, "--no-deps", "-e", str(HERE.parents[1])], check=True)


if __name__ == "__main__":
    main()
