"""Starting and killing the process of one environment, including everything it has started."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import cloudpickle
import gymnasium as gym

from rllib_minestudio.algorithms.env_pool import reaper
from rllib_minestudio.algorithms.env_pool.process_main import (
    Channel,
    Disconnected,
    read_file,
    write_file,
)
from rllib_minestudio.foundation.processes import with_one_thread

KILL_WITHIN_S = 5.0
"""A killed process that still exists by then waits for a disk or a driver, and is abandoned."""
END_WITHIN_S = 1.0
"""A process that exits closes its files first, shortly before it has ended."""

# With the parent's module path, so that everything the parent can import can be unpickled.
_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    f"from {__package__}.process_main import main; main(*map(int, sys.argv[2:]))"
)

_logger = logging.getLogger(__name__)


class Reaper:
    """The pool's connection to `reaper.py`, which is restarted if it is lost.

    Attributes:
        pid: The reaper's process id.
    """

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._start()

    def add(self, group: int) -> None:
        """Have a process group killed when this process is gone."""
        self._groups.add(group)
        self._tell(f"+{group}")

    def remove(self, group: int) -> None:
        """Forget a group that is gone, since its number may be reused."""
        self._groups.discard(group)
        self._tell(f"-{group}")

    def close(self) -> None:
        """Let the reaper kill the remaining groups, and wait until it has ended."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()

    def _start(self) -> None:
        # Isolated from environment variables (-I) and, in its own session, from Ctrl-C.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.pid = int(self._process.stdout.readline())
        self._process.wait()

    def _tell(self, line: str) -> None:
        try:
            self._write(line)
        except BrokenPipeError:
            self.close()
            self._start()
            for group in self._groups:
                self._write(f"+{group}")

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), f"{line}\n".encode())


class EnvProcess:
    """The process of one environment, which leads its own process group and session.

    Args:
        maker: The pickled constructor of the environment.
        obs_fd: A memory file for its observations.
        reaper: Kills the process group when this process is gone.

    Attributes:
        pid: The process id, which is also the group's.
    """

    def __init__(self, maker: bytes, obs_fd: int, reaper: Reaper) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._handover_fd = os.memfd_create("handover")
        write_file(self._handover_fd, maker)
        fds = (theirs.fileno(), obs_fd, self._handover_fd)
        numbers = [str(number) for number in (*fds, os.getpid())]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOTSTRAP, json.dumps(sys.path), *numbers],
            stdin=subprocess.DEVNULL,
            pass_fds=fds,
            start_new_session=True,
            env=with_one_thread(os.environ),
        )
        theirs.close()
        self.pid = self._process.pid
        self._channel = Channel(ours)
        self._selector: selectors.BaseSelector | None = None
        self._reaper = reaper
        reaper.add(self.pid)

    def listen(self, selector: selectors.BaseSelector, data: Any) -> None:
        """Register with a selector, to be notified of messages."""
        self._selector = selector
        selector.register(self._channel, selectors.EVENT_READ, data)

    def ignore(self) -> None:
        """Stop receiving and sending, since the process is known to have ended."""
        if self._selector is not None:
            self._selector.unregister(self._channel)
            self._selector = None

    def send(self, *message: Any) -> None:
        """Send a message (see `process_main.py`).

        Raises:
            Disconnected: If the process has ended.
        """
        if self._selector is None:
            raise Disconnected
        self._channel.send(*message)

    def recv(self) -> tuple[Any, ...]:
        """Receive the next message, once the selector has reported one.

        Raises:
            Disconnected: If the process has ended.
        """
        return self._channel.recv()

    def spaces(self) -> tuple[gym.Space, gym.Space]:
        """Return the environment's observation and action space, once it is built."""
        return cloudpickle.loads(read_file(self._handover_fd))

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self._end() is not None

    def wait(self, seconds: float) -> None:
        """Wait until the process has ended, for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while not self.has_ended() and time.monotonic() < deadline:
            time.sleep(0.005)

    def how_it_ended(self) -> str:
        """Return how the process ended, as the rest of a sentence that begins with "it"."""
        self.wait(END_WITHIN_S)
        end = self._end()
        if end is None:
            return "closed its connection"
        if end.si_code == os.CLD_EXITED:
            return f"ended with exit code {end.si_status}"
        return f"was killed by {signal.Signals(end.si_status).name}"

    def _end(self) -> Any:
        """Return the exit code and status, or None while the process runs.

        This does not reap the process: until it is reaped, no other process can get its id.
        """
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)

    def kill(self) -> None:
        """Kill the process and everything in its group; call only once."""
        self.ignore()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._reaper.remove(self.pid)
        try:
            self._process.wait(KILL_WITHIN_S)
        except subprocess.TimeoutExpired:
            _logger.warning("Process %d has not ended although it was killed.", self.pid)
        self._channel.close()
        os.close(self._handover_fd)
