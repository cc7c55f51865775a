"""What resets and dead games leave behind: processes, ports, handles, folders, memory.

    python benchmarks/minecraft_soak.py            # 1,000 resets, 50 dead games; minutes
    python benchmarks/minecraft_soak.py --resets 40 --deaths 2

Needs the package minestudio; the embedded engine is the game. One environment is reset again and
again (fast resets, a few steps each); every now and then its game is killed in the middle of an
episode, which truncates that episode and starts a new game. The table has one row per twentieth
of the run. Exit status 1 if anything has grown from the first quarter of the run to the last.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

from rllib_minestudio.env import ENGINE_ERROR, MineStudioEnv
from rllib_minestudio.env.voxel.server import launcher

STEPS = 3
ROWS = 20
GROWTH = 1.05
"""Memory in the last quarter over memory in the first that counts as flat."""
IDLE = {"buttons": 0, "camera": 60}


class Row(NamedTuple):
    """What there is at one moment."""

    resets: int
    deaths: int
    processes: int
    zombies: int
    listening: int
    claimed: int
    handles: int
    folders: int
    memory_mib: float


def look(resets: int, deaths: int, node: Path) -> Row:
    """Count what belongs to this process, its game, and the node's folder."""
    me = psutil.Process()
    family = me.children(recursive=True)
    zombies = sum(process.status() == psutil.STATUS_ZOMBIE for process in family)
    listening = sum(
        connection.status == psutil.CONN_LISTEN
        for process in family
        if process.status() != psutil.STATUS_ZOMBIE
        for connection in process.net_connections("tcp")
    )
    claimed = sum(lock.stat().st_size > 0 for lock in node.glob("*/ports/*.lock"))
    return Row(
        resets,
        deaths,
        len(family),
        zombies,
        listening,
        claimed,
        len(os.listdir("/proc/self/fd")),
        len(list(node.glob("*/runs/*"))) + len(list(node.glob("tmp*"))),
        me.memory_info().rss / 2**20,
    )


def kill_game(env: MineStudioEnv) -> None:
    """Kill the game itself, as the kernel does when memory is short."""
    supervisor = psutil.Process(env.backend.process.pid)  # type: ignore[attr-defined]
    for process in supervisor.children(recursive=True):
        if "--port" in process.cmdline():
            process.kill()


def soak(resets: int, deaths: int, directory: Path, node: Path) -> list[Row]:
    """Play, kill, and look."""
    env = MineStudioEnv(
        engine="minecraft",
        minecraft={"directory": str(directory)},
        obs_size=[64, 64],
        render_size=[64, 64],
        num_empty_frames=1,
        callbacks=[
            {"FastReset": {"biomes": ["plains"], "random_tp_range": 100}},
            {"JudgeReset": STEPS},
        ],
    )
    kill_at = {round((i + 0.5) * resets / deaths) for i in range(deaths)} if deaths else set()
    rows, died = [], 0
    for number in range(1, resets + 1):
        env.reset()
        if number in kill_at:
            kill_game(env)
        ends = [env.step(IDLE)[3:]]
        while not ends[-1][0]:
            ends.append(env.step(IDLE)[3:])
        died += ENGINE_ERROR in ends[-1][1]
        if number % max(1, resets // ROWS) == 0:
            rows.append(report(look(number, died, node)))
    env.close()
    time.sleep(0.5)
    rows.append(report(look(resets, died, node)))
    return rows


def report(row: Row) -> Row:
    """Print a row of the table."""
    print("| " + " | ".join(f"{value:.6g}" for value in row) + " |", flush=True)
    return row


def problems(rows: list[Row], deaths: int) -> list[str]:
    """Say what has been left behind; nothing if all is well."""
    *running, closed = rows
    quarter = len(running) // 4 + 1
    early = Row(*map(max, zip(*running[:quarter], strict=True)))
    late = Row(*map(max, zip(*running[-quarter:], strict=True)))
    found = [
        f"{name} grew from {getattr(early, name)} to {getattr(late, name)}"
        for name in ("processes", "listening", "claimed", "handles", "folders")
        if getattr(late, name) > getattr(early, name)
    ]
    if late.memory_mib > early.memory_mib * GROWTH:
        found.append(f"memory grew from {early.memory_mib:.0f} to {late.memory_mib:.0f} MiB")
    if closed.deaths != deaths:
        found.append(f"{closed.deaths} games died instead of {deaths}")
    found += [
        f"{getattr(closed, name)} {name} are left"
        for name in ("processes", "listening", "claimed", "folders")
        if getattr(closed, name)
    ]
    return found


def main() -> int:
    """Print the table as it grows, and what is wrong with it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--resets", type=int, default=1000)
    parser.add_argument("--deaths", type=int, default=50)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory, node = Path(folder, "MineStudio"), Path(folder, "tmp")
        node.mkdir()
        launcher.install(directory)
        os.environ["TMPDIR"] = tempfile.tempdir = str(node)
        print("| " + " | ".join(Row._fields) + " |\n|" + "---|" * len(Row._fields), flush=True)
        started = time.monotonic()
        rows = soak(given.resets, given.deaths, directory, node)
        seconds = time.monotonic() - started
        tempfile.tempdir = None
    wrong = problems(rows, given.deaths)
    print(f"{seconds:.0f} s. " + ("; ".join(wrong) or "Nothing is left behind, memory is flat."))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
