"""One running game: its options, its locks, and its process group from launch to last file."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import psutil

from rllib_minestudio.errors import EngineError
from rllib_minestudio.foundation.options import Problems, is_integer, is_number

# -------------- file locks with which a node's processes share ports and take turns to start a game
# A lock belongs to an open file (flock) and ends with the process, however that ends, so no
# process can leave anything locked. The files are in the temporary folder, which is local to the
# node, unlike MineStudio's directory, which several nodes may share.

PORTS_PER_WORKER = 32
_PORT_RANGE = 4096
"""Number of ports from `first_port` on that games may use: the ranges of 128 workers."""
_TRY_LOCK_EVERY_S = 0.05


def node_directory() -> Path:
    """Return this user's folder of shared state on this node; create it if it is missing.

    Raises:
        EngineError: Others may write there, and what is written there says which processes to end.
    """
    directory = Path(tempfile.gettempdir(), f"rllib_minestudio-{os.getuid()}")
    directory.mkdir(mode=0o700, exist_ok=True)
    facts = directory.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        raise EngineError(
            f"{str(directory)!r} must be a folder of yours that nobody else can write to. Remove "
            "it, or set TMPDIR to a folder of your own."
        )
    return directory


class Lock:
    """A file that this process has locked; holds a note about what the lock protects."""

    def __init__(self, file: Any) -> None:
        self._file = file

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self._file.name)

    def read(self) -> dict[str, Any]:
        """Return the note of the current or the previous holder; {} if there is none."""
        self._file.seek(0)
        try:
            note = json.loads(self._file.read() or "{}")
        except ValueError:  # its writer died while writing
            return {}
        return note if isinstance(note, dict) else {}

    def write(self, note: dict[str, Any]) -> None:
        """Replace the note."""
        self._file.truncate(0)
        self._file.write(json.dumps(note))
        self._file.flush()

    def clear(self) -> None:
        """Remove the note: what the lock protects has ended properly."""
        self._file.truncate(0)

    def release(self) -> None:
        """Unlock; may be called twice. The file stays: removing it would race with others."""
        self._file.close()


def try_lock(path: Path) -> Lock | None:
    """Lock a file, creating it if it is missing; return None if it is already locked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return Lock(file)


def claim_port(first_port: int, worker_index: int, *, avoid: frozenset[int] = frozenset()) -> Lock:
    """Lock a port that nothing on this node uses.

    Args:
        first_port: The first port of all workers' ranges.
        worker_index: The worker whose range of `PORTS_PER_WORKER` ports is tried first; the other
            workers' ranges follow.
        avoid: Ports to leave out.

    Returns:
        The lock; `port_of` returns its port.

    Raises:
        EngineError: If every port is taken.
    """
    start = worker_index * PORTS_PER_WORKER % _PORT_RANGE
    for offset in range(_PORT_RANGE):
        port = first_port + (start + offset) % _PORT_RANGE
        if port in avoid or port > 65535:
            continue
        lock = try_lock(node_directory() / "ports" / f"{port}.lock")
        if lock is None:
            continue
        if _is_free(port):
            return lock
        lock.release()
    raise EngineError(
        f"No port from {first_port} to {first_port + _PORT_RANGE - 1} is free for the game. Choose "
        "another minecraft.first_port, or end the games that hold them (ss -tlnp)."
    )


def port_of(lock: Lock) -> int:
    """Return the port of a lock from `claim_port`."""
    return int(lock.path.stem)


def abandoned() -> Iterator[Lock]:
    """Yield the locks of ports whose holder has died without releasing them.

    The caller owns each lock and must release it.
    """
    for path in sorted((node_directory() / "ports").glob("*.lock")):
        if path.stat().st_size == 0:
            continue
        lock = try_lock(path)
        if lock is None:
            continue
        if path.stat().st_size:
            yield lock
        else:  # released just now
            lock.release()


@contextlib.contextmanager
def turn_to_start(limit: int, timeout_s: float) -> Iterator[None]:
    """Wait for one of this node's `limit` turns to start a game, and hold it in the `with` block.

    Raises:
        EngineError: If none has become free after `timeout_s` seconds.
    """
    slots = [node_directory() / "starts" / f"{i}.lock" for i in range(limit)]
    deadline = time.monotonic() + timeout_s
    while True:
        for path in random.sample(slots, len(slots)):
            lock = try_lock(path)
            if lock is not None:
                try:
                    yield
                finally:
                    lock.release()
                return
        if time.monotonic() >= deadline:
            raise EngineError(
                f"Waited {timeout_s:.0f} s for one of {limit} turns to start a game on this node. "
                "Start fewer workers per node, or raise minecraft.starts_at_once."
            )
        time.sleep(_TRY_LOCK_EVERY_S * random.uniform(0.5, 1.5))


def _is_free(port: int) -> bool:
    """Return whether the game could listen on a port."""
    with socket.socket() as probe:
        # Like the game: a port whose last connection is in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


# ---------------- the options of the real game: the mapping `minecraft` in the environment's config

DISPLAYS = ("auto", "xvfb", "virtualgl", "existing")
LAST_PORT = 65535

_MEMORY = re.compile(r"[1-9][0-9]{0,3}[gG]|[1-9][0-9]{0,6}[mM]")


@dataclass(frozen=True)
class MinecraftOptions:
    """How the real game is launched and how long it may take.

    Attributes:
        directory: MineStudio's directory, with the game in `engine/`. None means the environment
            variable MINESTUDIO_DIR, or `MineStudio` in the system's temporary folder.
        display: Where the game draws. "xvfb": a virtual screen per game, drawn by the CPU;
            "virtualgl": drawn by `device`; "existing": the screen that DISPLAY names; "auto":
            "virtualgl" if the environment variable MINESTUDIO_GPU_RENDER is 1, else "xvfb".
        device: What VirtualGL draws on: "egl", or a path such as "/dev/dri/card0".
        java_memory: Upper bound of the game's Java heap, such as "2G".
        first_port: Where the search for a free port begins. Each worker first searches its own
            range.
        starts_at_once: How many games of this node may be starting or loading a world at the
            same time. Others wait for their turn.
        launch_timeout_s: Seconds from the start of the process until the game is ready.
        reset_timeout_s: Seconds in which a world has to be loaded.
        step_timeout_s: Seconds for one tick.
        restart_interval: Episodes after which the game is restarted, because Java's memory use
            grows; 0 for never.
    """

    directory: str | None = None
    display: str = "auto"
    device: str = "egl"
    java_memory: str = "2G"
    first_port: int = 20000
    starts_at_once: int = max(1, (os.cpu_count() or 4) // 4)
    launch_timeout_s: float = 180.0
    reset_timeout_s: float = 90.0
    step_timeout_s: float = 30.0
    restart_interval: int = 0

    @classmethod
    def from_mapping(cls, options: Any) -> MinecraftOptions:
        """Check options from a user, and fill in the defaults.

        Raises:
            InvalidOptionsError: If anything is wrong; lists all problems.
        """
        if isinstance(options, cls):
            return options
        problems = Problems("minecraft")
        if not isinstance(options, Mapping):
            problems.add("minecraft", options, "must be a mapping")
            options = {}
        names = [option.name for option in fields(cls)]
        checked = cls(**problems.known("option", options, names))
        _check(problems, checked)
        problems.raise_if_any()
        return checked

    @property
    def root(self) -> Path:
        """MineStudio's directory."""
        default = Path(tempfile.gettempdir(), "MineStudio")
        return Path(self.directory or os.environ.get("MINESTUDIO_DIR") or default).expanduser()

    @property
    def jar(self) -> Path:
        """The game's jar file, where MineStudio looks for it."""
        return self.root / "engine" / "build" / "libs" / "mcprec-6.13.jar"

    @property
    def draws_with(self) -> str:
        """The display, with "auto" resolved."""
        if self.display != "auto":
            return self.display
        return "virtualgl" if os.environ.get("MINESTUDIO_GPU_RENDER") == "1" else "xvfb"

    @property
    def commands(self) -> Path:
        """The folder of the embedded engine's commands, if it stands in for the game."""
        return self.root / "engine" / "bin"

    def search_path(self) -> str:
        """Return the folders to search for programs: the engine's own, JAVA_HOME's, then PATH."""
        folders = [self.commands]
        if java_home := os.environ.get("JAVA_HOME"):
            folders.append(Path(java_home, "bin"))
        return os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])


def _check(problems: Problems, options: MinecraftOptions) -> None:
    directory: Any = options.directory
    if directory is not None and (not isinstance(directory, str) or not directory):
        problems.add("directory", directory, "must be a path, or None")
    problems.choice("display", options.display, DISPLAYS)
    if not isinstance(options.device, str) or not options.device:
        problems.add("device", options.device, "must be 'egl' or the path of a device")
    if not isinstance(options.java_memory, str) or not _MEMORY.fullmatch(options.java_memory):
        problems.add("java_memory", options.java_memory, "must be a size such as '2G' or '1500M'")
    if not is_integer(options.first_port) or not 1024 <= options.first_port <= LAST_PORT - 5000:
        rule = f"must be an integer from 1024 to {LAST_PORT - 5000}"
        problems.add("first_port", options.first_port, rule)
    if not is_integer(options.starts_at_once) or not 1 <= options.starts_at_once <= 10_000:
        problems.add("starts_at_once", options.starts_at_once, "must be an integer from 1 to 10000")
    for name in ("launch_timeout_s", "reset_timeout_s", "step_timeout_s"):
        seconds = getattr(options, name)
        if not is_number(seconds) or seconds <= 0:
            problems.add(name, seconds, "must be a positive number of seconds")
    if not is_integer(options.restart_interval) or options.restart_interval < 0:
        rule = "must be an integer of at least 0 (episodes; 0 for never)"
        problems.add("restart_interval", options.restart_interval, rule)


# --------------- one running game: a process group, from its launch to the removal of its last file

_PORT_LINE = "***** Start MalmoEnvServer on port "
_READY_LINE = "CLIENT enter state: DORMANT"

_SUPERVISOR = """
run_dir=$1; shift
exec 3<&0
"$@" </dev/null 3<&- &
game=$!
trap '' TERM
( read -r _ <&3; kill -TERM 0; sleep 2; rm -rf -- "$run_dir"; kill -KILL 0 ) &
watch=$!
exec 3<&-
wait "$game"
echo "(The game ended with status $?.)"
rm -rf -- "$run_dir"
kill -KILL "$watch"
wait "$watch"
kill -KILL 0
"""
"""Shell script that leads the process group. Its standard input closes when this process dies,
however it dies; then the script ends the game and removes its files. MineStudio has a Python daemon
of 284 MB look for orphans instead."""

_LOOK_EVERY_S = 0.02
_GRACE_S = 2.0
"""Seconds between SIGTERM, on which a game and its virtual screen clean up, and SIGKILL."""
_MOST_OUTPUT = 1 << 20
"""Bytes of a log that are read, from its beginning or its end."""
_LINES_IN_ERRORS = 15
_SIGNS_OF_TROUBLE = {
    "at org.lwjgl.opengl.Display.<clinit>": "it found no screen; see display in docs/minecraft.md",
    "Could not choose GLX13 config": "it found no OpenGL; install mesa (docs/minecraft.md)",
    "There is insufficient memory": "Java got no memory; see java_memory in docs/minecraft.md",
}


class GameProcess:
    """The game, launched and ready.

    Attributes:
        port: The port on 127.0.0.1 where it listens.
        pid: The process id of its group's leader.
    """

    def __init__(self, options: MinecraftOptions, worker_index: int) -> None:
        """Launch the game and wait until it is ready.

        Raises:
            EngineError: If it exits, takes another port than the given one, or is not ready in
                time. It leaves nothing behind.
        """
        self._lock = claim_port(options.first_port, worker_index)
        self.port = port_of(self._lock)
        node = node_directory()
        self._run_dir = node / "runs" / f"{self.port}-{uuid.uuid4().hex[:8]}"
        self._log = node / "logs" / f"{self.port}.log"
        try:
            self._popen = self._start(options)
        except BaseException:
            self._forget()
            raise
        self.pid = self._popen.pid
        try:
            self._lock.write(
                {
                    "group": self.pid,
                    "started": psutil.Process(self.pid).create_time(),
                    "run_dir": str(self._run_dir),
                }
            )
            self._await_ready(options.launch_timeout_s)
        except BaseException:
            self.kill()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether the game is still running."""
        return self._popen.poll() is None

    def last_words(self) -> str:
        """Return the end of the game's output, for error messages."""
        lines = self._output(from_end=True).splitlines()[-_LINES_IN_ERRORS:]
        if not lines:
            return "It printed nothing."
        return f"The end of its output ({self._log}):\n" + "\n".join(f"    {x}" for x in lines)

    def kill(self) -> None:
        """End the game and everything it has started; may be called twice."""
        stdin = self._popen.stdin
        if stdin is not None and not stdin.closed:
            end_group(self.pid, self._popen)
            stdin.close()
        self._forget()

    def _start(self, options: MinecraftOptions) -> subprocess.Popen[bytes]:
        """Start the process group with its own folder, log and temporary files."""
        self._run_dir.mkdir(parents=True)
        self._log.parent.mkdir(exist_ok=True)
        # Files of the game, such as its options, which MineStudio keeps in `runtime`.
        runtime = options.root / "runtime"
        if runtime.is_dir():
            shutil.copytree(runtime, self._run_dir, dirs_exist_ok=True)
        temporary = self._run_dir / "tmp"
        temporary.mkdir(exist_ok=True)
        environ = {
            **os.environ,
            "PATH": options.search_path(),
            "MINESTUDIO_DIR": str(options.root),
            "TMPDIR": str(temporary),  # xvfb-run leaves files there when it is killed
        }
        with self._log.open("wb") as log:
            return subprocess.Popen(
                ["/bin/sh", "-c", _SUPERVISOR, "sh", self._run_dir, *command(options, self.port)],
                cwd=self._run_dir,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _await_ready(self, timeout_s: float) -> None:
        """Wait for the lines that MineStudio's engine prints when it accepts connections."""
        deadline = time.monotonic() + timeout_s
        while True:
            is_alive = self.is_alive  # checked before reading, so that no last line is missed
            output = self._output()
            for sign, meaning in _SIGNS_OF_TROUBLE.items():
                if sign in output:
                    raise EngineError(f"The game cannot start: {meaning}. {self.last_words()}")
            if _READY_LINE in output and _PORT_LINE in output:
                break
            if not is_alive:
                raise EngineError(f"The game ended before it was ready. {self.last_words()}")
            if time.monotonic() > deadline:
                raise EngineError(
                    f"The game was not ready after {timeout_s:g} s (minecraft.launch_timeout_s). "
                    f"{self.last_words()}"
                )
            time.sleep(_LOOK_EVERY_S)
        announced = output.split(_PORT_LINE, 1)[1].split(None, 1)[0]
        if announced != str(self.port):
            raise EngineError(
                f"The game listens on port {announced} instead of {self.port}: something else has "
                "taken that one in the meantime."
            )

    def _output(self, *, from_end: bool = False) -> str:
        """Return the game's output, or only its beginning or end if it is long."""
        with self._log.open("rb") as log:
            if from_end and self._log.stat().st_size > _MOST_OUTPUT:
                log.seek(-_MOST_OUTPUT, os.SEEK_END)
            return log.read(_MOST_OUTPUT).decode(errors="replace")

    def _forget(self) -> None:
        """Remove the folder and release the port."""
        shutil.rmtree(self._run_dir, ignore_errors=True)
        with contextlib.suppress(ValueError):  # already released
            self._lock.clear()
            self._lock.release()


def command(options: MinecraftOptions, port: int) -> list[str]:
    """Return the command line that starts the game, as in MineStudio's launchClient.sh."""
    game = ["java", f"-Xmx{options.java_memory}", "-jar", str(options.jar), f"--envPort={port}"]
    prefix = {
        "xvfb": ["xvfb-run", "-a"],
        "virtualgl": ["vglrun", "-d", options.device],
        "existing": [],
    }[options.draws_with]
    return prefix + game


def end_group(leader: int, child: subprocess.Popen[bytes] | None = None) -> None:
    """End every process of a group, by SIGTERM first.

    Args:
        leader: The leader's process id, which is the group's.
        child: The leader, if it is a child of this process and has to be waited for.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE_S
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, number)
        while _is_there(leader, child) and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY_S)


def collect_orphans() -> int:
    """End games whose owner has died and remove their files; return how many."""
    collected = 0
    for lock in abandoned():
        note = lock.read()
        leader, started = note.get("group", 0), note.get("started", 0.0)
        with contextlib.suppress(psutil.Error):
            # The process id may belong to another process by now.
            if leader > 1 and psutil.Process(leader).create_time() == started:
                end_group(leader)
        run_dir = Path(note.get("run_dir", ""))
        if run_dir.parent == node_directory() / "runs":
            shutil.rmtree(run_dir, ignore_errors=True)
        lock.clear()
        lock.release()
        collected += 1
    return collected


def _is_there(leader: int, child: subprocess.Popen[bytes] | None) -> bool:
    """Return whether any process of the group is alive; zombies are not."""
    if child is not None:
        child.poll()
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                return True
    return False
