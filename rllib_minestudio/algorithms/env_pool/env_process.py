"""Starting and ending the process of one environment, with everything that it has started."""

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
from rllib_minestudio.algorithms.env_pool.worker import Channel, Disconnected, read_file, write_file
from rllib_minestudio.foundation.processes import with_one_thread

KILL_WITHIN_S = 5.0
"""A killed process that is not gone by then waits for a disk or a driver, and is left behind."""
END_WITHIN_S = 1.0
"""A process that ends closes its files first, and a moment later it has ended."""

# With the parent's module path, so that whatever it could import can be unpickled.
_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    f"from {__package__}.worker import main; main(*map(int, sys.argv[2:]))"
)

_logger = logging.getLogger(__name__)


class Reaper:
    """The pool's end of `reaper.py`, which is started anew should it be lost.

    Attributes:
        pid: The reaper's process id.
    """

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._start()

    def add(self, group: int) -> None:
        """Have a group killed when this process is gone."""
        self._groups.add(group)
        self._tell(f"+{group}")

    def remove(self, group: int) -> None:
        """The group is gone; its number may soon be someone else's."""
        self._groups.discard(group)
        self._tell(f"-{group}")

    def close(self) -> None:
        """Let it kill what is left, and end."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()

    def _start(self) -> None:
        # Isolated from the environment's settings and, by its own session, from Ctrl-C.
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
    """The process of one environment, leader of a process group and session of its own.

    Args:
        maker: The pickled constructor of the environment.
        obs_fd: A memory file for its observations.
        reaper: Is told of it.

    Attributes:
        pid: Its process id, which is its group's, too.
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
        """Have a selector tell when there is something to receive."""
        self._selector = selector
        selector.register(self._channel, selectors.EVENT_READ, data)

    def ignore(self) -> None:
        """Its end is known: there is nothing to receive or to send any more."""
        if self._selector is not None:
            self._selector.unregister(self._channel)
            self._selector = None

    def send(self, *message: Any) -> None:
        """Send a message (see `worker.py`).

        Raises:
            Disconnected: It has ended.
        """
        if self._selector is None:
            raise Disconnected
        self._channel.send(*message)

    def recv(self) -> tuple[Any, ...]:
        """Take the next message, once the selector has told of one.

        Raises:
            Disconnected: It has ended.
        """
        return self._channel.recv()

    def spaces(self) -> tuple[gym.Space, gym.Space]:
        """The environment's observation and action space, once it is built."""
        return cloudpickle.loads(read_file(self._handover_fd))

    def has_ended(self) -> bool:
        """Whether it has ended, by itself or not."""
        return self._end() is not None

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but not for longer."""
        deadline = time.monotonic() + seconds
        while not self.has_ended() and time.monotonic() < deadline:
            time.sleep(0.005)

    def how_it_ended(self) -> str:
        """What is known of its end, as the rest of a sentence that begins with "it"."""
        self.wait(END_WITHIN_S)
        end = self._end()
        if end is None:
            return "closed its connection"
        if end.si_code == os.CLD_EXITED:
            return f"ended with exit code {end.si_status}"
        return f"was killed by {signal.Signals(end.si_status).name}"

    def _end(self) -> Any:
        """Code and status of its end, if it has ended.

        It is not reaped yet: until it is, no other process can get its number.
        """
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)

    def kill(self) -> None:
        """End it and everything in its group, now; call once."""
        self.ignore()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._reaper.remove(self.pid)
        try:
            self._process.wait(KILL_WITHIN_S)
        except subprocess.TimeoutExpired:
            _logger.warning("Process %d does not end although it was killed.", self.pid)
        self._channel.close()
        os.close(self._handover_fd)
