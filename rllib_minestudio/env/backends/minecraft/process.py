"""One running game: a process group, from its launch to the removal of its last file."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path

import psutil

from rllib_minestudio.env.backends.minecraft.launch_options import MinecraftOptions
from rllib_minestudio.env.backends.minecraft.node_locks import (
    abandoned,
    claim_port,
    node_directory,
    port_of,
)
from rllib_minestudio.errors import EngineError

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
