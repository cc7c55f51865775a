"""Messages between a pool and the process of an environment.

Over a socket that keeps messages whole (SOCK_SEQPACKET): on a stream, a process that is stopped in
the middle of writing one would leave its reader waiting for the rest.
"""

from __future__ import annotations

import pickle
import socket
from typing import Any

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
        """Take over the socket."""
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
