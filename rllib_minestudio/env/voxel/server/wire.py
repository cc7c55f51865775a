"""Messages on a socket: a big-endian uint32 length, then so many bytes; never more than allowed."""

from __future__ import annotations

import socket
import struct
import time

_LENGTH = struct.Struct("!I")
_CHUNK = 65536


class ProtocolError(Exception):
    """The other side sent something that the protocol does not have; the message says what."""


def receive(
    connection: socket.socket, limit: int, begin_within: float | None, seconds: float
) -> bytes | None:
    """Read one message.

    Memory grows with what arrives, not with what the length promises.

    Args:
        connection: Where to read.
        limit: Most bytes that the message may have.
        begin_within: Seconds to wait for its first byte; None waits for ever.
        seconds: How long the message may take from its first byte to its last.

    Returns:
        The message, or None if the connection was closed before it began.

    Raises:
        ProtocolError: If it is longer than `limit` or ends before its length.
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
        connection: Where to write.
        *messages: Payloads, each of which gets its length in front.
        seconds: How long the other side may take to accept them all.

    Raises:
        TimeoutError: If it takes longer.
    """
    connection.settimeout(seconds)
    connection.sendall(b"".join(_LENGTH.pack(len(m)) + m for m in messages))
