"""What must not be left behind when parts are killed: processes, open files, shared memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.processes import is_zygote, raylet_of

SHARED_MEMORY = Path("/dev/shm")


def relatives() -> list[psutil.Process]:
    """What this process and its Ray have started, also what has lost its parent since."""
    children = [
        process
        for child in psutil.Process().children()
        if not is_zygote(command_line(child))  # which works for others, too
        for process in (child, *child.children(recursive=True))
    ]
    raylets = {str(child.pid) for child in children if _name(child) == "raylet"}
    others = [
        process
        for process in psutil.process_iter()
        if process not in children and _raylet_of(process) in raylets
    ]
    return children + others


def command_line(process: psutil.Process) -> str:
    """With its arguments; empty if it is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def open_files(pid: int) -> list[str]:
    """What each file descriptor of a process points to; empty if it is gone, or not ours to see."""
    found = []
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                found.append(os.readlink(link))
            except (FileNotFoundError, PermissionError):
                continue
    except (FileNotFoundError, PermissionError):
        pass
    return found


def memory_files(pid: int) -> int:
    """How many open files of a process are memory without a name, as frames are shared."""
    return sum(name.startswith("/memfd:") for name in open_files(pid))


def named_memory() -> set[str]:
    """Files of shared memory that have a name."""
    return set(os.listdir(SHARED_MEMORY))


def forgotten_memory(before: set[str]) -> set[str]:
    """Those that came since and that no process has open or mapped."""
    new = {str(SHARED_MEMORY / name) for name in named_memory() - before}
    return new - set(_used_memory()) if new else new


def _used_memory() -> Iterator[str]:
    """Paths of shared memory that some process uses."""
    for folder in Path("/proc").glob("[0-9]*"):
        yield from open_files(int(folder.name))
        try:
            lines = (folder / "maps").read_text().splitlines()
        except OSError:
            continue
        yield from (line.split(maxsplit=5)[-1] for line in lines if str(SHARED_MEMORY) in line)


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return ""


def _raylet_of(process: psutil.Process) -> str | None:
    """The process of the raylet that started another, which may have been forked for it."""
    try:
        return raylet_of(process.pid) or process.environ().get("RAY_RAYLET_PID")
    except psutil.Error:
        return None
