"""The process that one environment runs in: its entry point, and its messages to the pool.

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
from rllib_minestudio.errors import USER_ERRORS, describe
from rllib_minestudio.foundation.episode_info import SUCCESS, TASK
from rllib_minestudio.foundation.episode_seeds import begin_episode
from rllib_minestudio.foundation.observations import ObservationPart, parts_of, write_observation
from rllib_minestudio.foundation.processes import die_with

_ALIGNMENT = 16
"""Bytes; of the beginning of a part in shared memory."""


def main(channel_fd: int, obs_fd: int, handover_fd: int, parent: int) -> None:
    """Build the environment and serve it until told to close.

    Args:
        channel_fd: The socket to the pool.
        obs_fd: A memory file for the newest observation.
        handover_fd: A memory file with the pickled constructor, and the outermost keys that are
            read of observations (None: all); takes the pickled spaces.
        parent: Process id of the pool.
    """
    die_with(parent)
    for fd in (channel_fd, obs_fd, handover_fd):
        os.set_inheritable(fd, False)  # the game that the environment starts shall not hold them
    channel = Channel(socket.socket(fileno=channel_fd))
    try:
        make, read = cloudpickle.loads(read_file(handover_fd))
        env = make()
        shared = map_observation(obs_fd, parts_of(env.observation_space, read))
        write_file(handover_fd, cloudpickle.dumps((env.observation_space, env.action_space)))
        channel.send(READY)
        _serve(env, channel, shared)
    except Disconnected:
        sys.exit(1)  # the pool is gone, and has no use for an answer
    except Exception as error:
        trace = traceback.format_exc()[-MAX_BYTES // 8 :]
        channel.send(FAILED, describe(error)[:1000], trace, isinstance(error, USER_ERRORS))
        sys.exit(1)


def _serve(env: gym.Env, channel: Channel, shared: Observations) -> None:
    """Do what the pool asks until it asks to close."""
    while True:
        command, *arguments = channel.recv()
        if command == STEP:
            action, tells = arguments
            obs, reward, terminated, truncated, info = env.step(action)
            write_observation(shared, obs)
            ended = bool(terminated or truncated)
            last = _bounded(info) if ended or tells else None
            channel.send(OUTCOME, float(reward), bool(terminated), bool(truncated), last)
        elif command in (BEGIN, RESET):
            if command == BEGIN:
                obs, info = begin_episode(env, *arguments)
            else:
                seed, options = arguments
                obs, info = env.reset(seed=seed, options=options)
            write_observation(shared, obs)
            channel.send(BEGAN, _bounded(info))
        else:
            env.close()
            return


def read_file(fd: int) -> bytes:
    """The whole content of a memory file."""
    return os.pread(fd, os.fstat(fd).st_size, 0)


def write_file(fd: int, content: bytes) -> None:
    """Replace the content of a memory file."""
    os.ftruncate(fd, 0)
    os.pwrite(fd, content, 0)


def map_observation(fd: int, parts: Mapping[str, ObservationPart]) -> Observations:
    """Map a memory file, made as large as one observation, as one array per part."""
    sizes = [int(np.prod(part.shape)) * part.dtype.itemsize for part in parts.values()]
    # Every part begins where any number may.
    starts = np.cumsum([0, *(-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes)]).tolist()
    os.ftruncate(fd, starts[-1])
    memory = mmap.mmap(fd, starts[-1])
    return {
        name: np.frombuffer(memory, part.dtype, size // part.dtype.itemsize, start).reshape(
            part.shape
        )
        for (name, part), size, start in zip(parts.items(), sizes, starts[:-1], strict=True)
    }


def _bounded(info: Mapping[Any, Any]) -> dict[str, Any]:
    """The plain part of an info, reduced to what is read from it if it is huge."""
    plain = plain_info(info)
    if len(repr(plain)) > MAX_BYTES // 2:
        return {key: plain[key] for key in (TASK, SUCCESS) if key in plain}
    return plain


# ---------------------------------------- messages between a pool and the process of an environment
# Over a socket that keeps messages whole (SOCK_SEQPACKET): on a stream, a process that is stopped
# in the middle of writing one would leave its reader waiting for the rest.

READY = "ready"
"""The environment is built, and its spaces are in the file that its constructor came in."""
BEGAN = "began"
"""An episode has begun; its observation is in shared memory. With the plain info."""
OUTCOME = "outcome"
"""A step was played; its observation is in shared memory. With reward, terminated, truncated, and
the plain info if the episode ended or it was asked for, else None."""
FAILED = "failed"
"""The environment raised. With the exception in a line, its traceback, and whether a new
environment would only raise it again."""

BEGIN = "begin"
"""Begin the episode of a seed, in a new world only if the environment wants one."""
RESET = "reset"
"""Begin an episode. With seed and options of the reset."""
STEP = "step"
"""Play a step. With the action, and whether its info is wanted though the episode goes on."""
CLOSE = "close"
"""End."""

MAX_BYTES = 128 * 1024
"""Of one message; the kernel's limit is at least about 200 KiB."""


class Disconnected(Exception):
    """The other end of a channel is gone."""


class Channel:
    """One end of the connection.

    Args:
        end: A socket of type SOCK_SEQPACKET; taken over.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._buffer = memoryview(bytearray(MAX_BYTES))

    def fileno(self) -> int:
        """For selectors."""
        return self._end.fileno()

    def send(self, *message: Any) -> None:
        """Send one message.

        Raises:
            Disconnected: The other end is gone.
            ValueError: The message is larger than `MAX_BYTES`.
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
            Disconnected: The other end is gone.
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
