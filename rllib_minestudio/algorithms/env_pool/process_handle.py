"""The process of one environment: what runs in it, its messages, its start and its end."""

from __future__ import annotations

import contextlib
import json
import logging
import mmap
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np

from rllib_minestudio.algorithms.env_pool import reaper
from rllib_minestudio.algorithms.env_pool.base import Observations, plain_info
from rllib_minestudio.errors import USER_ERRORS, describe_with_place
from rllib_minestudio.foundation.episode_seeds import begin_episode
from rllib_minestudio.foundation.names import ENGINE_ERROR, RESET_ERROR, SUCCESS, TASK
from rllib_minestudio.foundation.observations import ObservationPart, parts_of, write_observation
from rllib_minestudio.foundation.processes import die_with, with_one_thread

# ------------- the process that runs one environment: its entry point, and its messages to the pool
# Imports neither Ray nor torch, which would cost every environment seconds and hundreds of
# megabytes.

_ALIGNMENT = 16
"""Alignment in bytes of each part in shared memory."""


def main(channel_fd: int, obs_fd: int, handover_fd: int, parent: int) -> None:
    """Build the environment and serve it until told to close.

    Args:
        channel_fd: The socket to the pool.
        obs_fd: A memory file for the newest observation.
        handover_fd: A memory file with the pickled constructor and the top-level observation keys
            to return (None: all). The pickled spaces are written to it.
        parent: Process id of the pool.
    """
    die_with(parent)
    for fd in (channel_fd, obs_fd, handover_fd):
        os.set_inheritable(fd, False)  # the game that the environment starts must not inherit them
    channel = Channel(socket.socket(fileno=channel_fd))
    try:
        make, read = cloudpickle.loads(read_file(handover_fd))
        env = make()
        shared = map_observation(obs_fd, parts_of(env.observation_space, read))
        write_file(handover_fd, cloudpickle.dumps((env.observation_space, env.action_space)))
        channel.send(READY)
        _serve(env, channel, shared)
    except Disconnected:
        sys.exit(1)  # the pool is gone
    except Exception as error:
        trace = traceback.format_exc()[-MAX_BYTES // 8 :]
        what = describe_with_place(error)[:1000]
        channel.send(FAILED, what, trace, isinstance(error, USER_ERRORS))
        sys.exit(1)


def _serve(env: gym.Env, channel: Channel, shared: Observations) -> None:
    """Execute the pool's commands until it sends `CLOSE`."""
    while True:
        command, *arguments = channel.recv()
        if command == STEP:
            action, tells = arguments
            obs, reward, terminated, truncated, info = env.step(action)
            write_observation(shared, obs)
            ended = bool(terminated or truncated)
            last = bounded_info(info) if ended or tells else None
            channel.send(OUTCOME, float(reward), bool(terminated), bool(truncated), last)
        elif command in (BEGIN, RESET):
            if command == BEGIN:
                obs, info = begin_episode(env, *arguments)
            else:
                seed, options = arguments
                obs, info = env.reset(seed=seed, options=options)
            write_observation(shared, obs)
            channel.send(BEGAN, bounded_info(info))
        else:
            env.close()
            return


def read_file(fd: int) -> bytes:
    """Return the content of a memory file."""
    return os.pread(fd, os.fstat(fd).st_size, 0)


def write_file(fd: int, content: bytes) -> None:
    """Replace the content of a memory file."""
    os.ftruncate(fd, 0)
    os.pwrite(fd, content, 0)


def map_observation(fd: int, parts: Mapping[str, ObservationPart]) -> Observations:
    """Resize a memory file to one observation, and map it as one array per part."""
    sizes = [int(np.prod(part.shape)) * part.dtype.itemsize for part in parts.values()]
    # Every part begins at an offset that suits any dtype.
    starts = np.cumsum([0, *(-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes)]).tolist()
    os.ftruncate(fd, starts[-1])
    memory = mmap.mmap(fd, starts[-1])
    return {
        name: np.frombuffer(memory, part.dtype, size // part.dtype.itemsize, start).reshape(
            part.shape
        )
        for (name, part), size, start in zip(parts.items(), sizes, starts[:-1], strict=True)
    }


def bounded_info(info: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the plain part of an info; if it is too large, only what an `Episode` reads of it."""
    plain = plain_info(info)
    if len(repr(plain)) > MAX_BYTES // 2:
        return {
            key: plain[key] for key in (TASK, SUCCESS, ENGINE_ERROR, RESET_ERROR) if key in plain
        }
    return plain


# ---------------------------------------- messages between a pool and the process of an environment
# They are sent over a socket that preserves message boundaries (SOCK_SEQPACKET). With a stream, a
# process that is stopped while writing would leave the reader waiting for the rest.

READY = "ready"
"""The environment is built, and its spaces are in the handover file."""
BEGAN = "began"
"""An episode has begun; its observation is in shared memory. Carries the plain info."""
OUTCOME = "outcome"
"""A step was played; its observation is in shared memory. Carries reward, terminated, truncated,
and the plain info if the episode ended or it was requested, else None."""
FAILED = "failed"
"""The environment raised an exception. Carries the exception in one line, its traceback, and
whether it is a user error, which a new environment would raise again."""

BEGIN = "begin"
"""Begin the episode of a seed, in a new world only if the environment wants one."""
RESET = "reset"
"""Begin an episode. Carries the seed and options of the reset."""
STEP = "step"
"""Play a step. Carries the action, and whether to return the info even if the episode continues."""
CLOSE = "close"
"""Close the environment, and exit."""

MAX_BYTES = 128 * 1024
"""Maximum size of a message; the kernel's limit is at least about 200 KiB."""


class Disconnected(Exception):
    """The other end of a channel is gone."""


class Channel:
    """One end of the connection, which owns a socket of type SOCK_SEQPACKET."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._buffer = memoryview(bytearray(MAX_BYTES))

    def fileno(self) -> int:
        """Return the file descriptor, for selectors."""
        return self._end.fileno()

    def send(self, *message: Any) -> None:
        """Send one message.

        Raises:
            Disconnected: If the other end is gone.
            ValueError: If the message is larger than `MAX_BYTES`.
        """
        packed = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        if len(packed) > MAX_BYTES:
            raise ValueError(f"A message of {len(packed)} bytes is larger than {MAX_BYTES}.")
        try:
            self._end.send(packed)
        except ConnectionError as error:
            raise Disconnected from error

    def recv(self) -> tuple[Any, ...]:
        """Wait for one message.

        Raises:
            Disconnected: If the other end is gone.
        """
        try:
            size = self._end.recv_into(self._buffer)
        except ConnectionError as error:
            raise Disconnected from error
        if not size:
            raise Disconnected
        return pickle.loads(self._buffer[:size])

    def close(self) -> None:
        """Close this end."""
        self._end.close()


# --------- starting and killing the process of one environment, including everything it has started

KILL_WITHIN_S = 5.0
"""A killed process that still exists by then waits for a disk or a driver, and is abandoned."""
END_WITHIN_S = 1.0
"""A process that exits closes its files first, shortly before it has ended."""

# With the parent's module path, so that everything the parent can import can be unpickled.
_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    f"from {__package__}.process_handle import main; main(*map(int, sys.argv[2:]))"
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
        """Send a message (see above).

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
