"""Parsing of steps (lines "KEY VALUE", as MineStudio writes an action), and socket messages."""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rllib_minestudio.env.voxel.observed_boxes import Box, mobs_box, voxels_box

KEYS = frozenset(
    ["forward", "left", "back", "right", "jump", "inventory", "sneak", "sprint", "attack", "use"]
    + [f"hotbar.{slot}" for slot in range(1, 10)]
)
"""Keys that are passed to the engine; MineStudio's `pickItem` has none in survival mode."""

_IGNORED_KEYS = frozenset(["pickItem", "drop", "swapHands"])
_LONGEST_CHAT = 32500
"""Longest command in characters, as in Minecraft's command blocks."""


@dataclass
class StepRequest:
    """The contents of one step.

    Attributes:
        action: The engine's action: keys 0 or 1, and `camera`, (pitch, yaw) in degrees.
        chat: A command to execute before the tick; empty for none.
        voxels: The box whose blocks to report, or None.
        mobs: The box whose mobs to report, or None.
    """

    action: dict[str, Any] = field(default_factory=dict)
    chat: str = ""
    voxels: Box | None = None
    mobs: Box | None = None


def read_step(text: str) -> StepRequest:
    """Read the text of a step.

    Raises:
        ProtocolError: If a line is unknown or its value has the wrong form.
    """
    step = StepRequest()
    for line in text.split("\n"):
        key, _, value = line.partition(" ")
        if key in KEYS:
            step.action[key] = int(_number(key, value) != 0.0)
        elif key == "camera":
            angles = value.split()
            if len(angles) != 2:
                raise ProtocolError(f"camera needs pitch and yaw; got {value[:80]!r}")
            step.action["camera"] = (_number(key, angles[0]), _number(key, angles[1]))
        elif key == "chat":
            if len(value) > _LONGEST_CHAT:
                raise ProtocolError(f"a chat message may have at most {_LONGEST_CHAT} characters")
            if step.chat:
                raise ProtocolError("a step has more than one chat message")
            step.chat = value
        elif key == "voxels":
            step.voxels = _box(voxels_box, key, value)
        elif key == "mobs":
            step.mobs = _box(mobs_box, key, value)
        elif line.strip() and key not in _IGNORED_KEYS:
            raise ProtocolError(f"a step has the unknown line {line[:80]!r}")
    return step


def _number(key: str, word: str) -> float:
    # NumPy's booleans are written as "True" and "False".
    named = {"true": 1.0, "false": 0.0}.get(word.strip().lower())
    if named is not None:
        return named
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not abs(number) <= 1e6:
        raise ProtocolError(f"{key} needs a number; got {word[:80]!r}")
    return number


def _box(read: Callable[[list[float]], Box | None], key: str, value: str) -> Box | None:
    words = value.split(",")
    if len(words) != 6:
        raise ProtocolError(f"{key} needs six bounds; got {value[:80]!r}")
    try:
        return read([_number(key, word) for word in words])
    except ValueError as error:
        raise ProtocolError(str(error)) from error


# ----------------------------------------------------------------------------- messages on a socket
# A message is a big-endian uint32 length, followed by that many bytes, up to a limit.

_LENGTH = struct.Struct("!I")
_CHUNK = 65536


class ProtocolError(Exception):
    """The other side sent something that the protocol does not allow; the message says what."""


def receive(
    connection: socket.socket, limit: int, begin_within: float | None, seconds: float
) -> bytes | None:
    """Read one message.

    Memory is allocated for bytes that have arrived, not for the announced length.

    Args:
        connection: The socket.
        limit: Most bytes that the message may have.
        begin_within: Seconds to wait for its first byte; None for no limit.
        seconds: Most seconds from the message's first byte to its last.

    Returns:
        The message, or None if the connection was closed before it began.

    Raises:
        ProtocolError: If it is longer than `limit`, or shorter than announced.
        TimeoutError: If it does not begin or is not complete in time.
    """
    connection.settimeout(begin_within)
    first = connection.recv(1)
    if not first:
        return None
    deadline = time.monotonic() + seconds
    (length,) = _LENGTH.unpack(first + _receive_exactly(connection, _LENGTH.size - 1, deadline))
    if length > limit:
        raise ProtocolError(f"a message of {length} bytes; at most {limit} are allowed here")
    return _receive_exactly(connection, length, deadline)


def _receive_exactly(connection: socket.socket, count: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the message was not complete in time")
        connection.settimeout(left)
        chunk = connection.recv(min(count - len(received), _CHUNK))
        if not chunk:
            raise ProtocolError(f"the connection ended {count - len(received)} bytes too early")
        received += chunk
    return bytes(received)


def send(connection: socket.socket, *messages: bytes, seconds: float) -> None:
    """Write messages one after the other.

    Args:
        connection: The socket.
        *messages: Payloads; each is preceded by its length.
        seconds: Most seconds that the other side may take to accept them all.

    Raises:
        TimeoutError: If it takes longer.
    """
    connection.settimeout(seconds)
    connection.sendall(b"".join(_LENGTH.pack(len(m)) + m for m in messages))
