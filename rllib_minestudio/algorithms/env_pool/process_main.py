"""The process that runs one environment: its entry point, and its messages to the pool.

Imports neither Ray nor torch, which would cost every environment seconds and hundreds of megabytes.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np

from rllib_minestudio.algorithms.env_pool.base import Observations, plain_info
from rllib_minestudio.errors import USER_ERRORS, describe_with_place
from rllib_minestudio.foundation.episode_info import ENGINE_ERROR, RESET_ERROR, SUCCESS, TASK
from rllib_minestudio.foundation.episode_seeds import begin_episode
from rllib_minestudio.foundation.observations import ObservationPart, parts_of, write_observation
from rllib_minestudio.foundation.processes import die_with

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
