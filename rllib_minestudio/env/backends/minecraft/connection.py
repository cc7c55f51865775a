"""Messages to and from the game, each exchange under one deadline.

A message is its length, a big-endian uint32, and so many bytes.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.errors import EngineError

_LENGTH = struct.Struct("!I")
_LARGEST_MESSAGE = 64 << 20
"""Bytes of the longest info that is believed; a step may ask for a million blocks."""
_PROTOCOL = "0.37.0"
"""Version that MineStudio's engine wants to hear."""
_GOODBYE = b"<Disconnect/>"
_SECONDS_TO_SAY_GOODBYE = 1.0


class Connection:
    """A TCP connection to a game on this machine.

    MineStudio's own gives every piece of a message 120 s, and takes a closed connection for an
    empty message.
    """

    def __init__(self, port: int, timeout_s: float) -> None:
        """Connect and say hello.

        Raises:
            EngineError: If nobody listens or takes the greeting in time.
        """
        self._deadline = time.monotonic() + timeout_s
        self._waits_for = "connecting"
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        except OSError as error:
            raise EngineError(f"Nothing answers on the game's port {port}: {error}.") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._header = bytearray(_LENGTH.size)
        self.send(f"<MalmoEnv{_PROTOCOL}/>".encode())

    def begin(self, exchange: str, timeout_s: float) -> None:
        """Start the clock for what comes now; `exchange` names it in errors ("a step")."""
        self._deadline = time.monotonic() + timeout_s
        self._waits_for = exchange

    def send(self, *messages: bytes) -> None:
        """Send messages.

        Raises:
            EngineError: If the game does not take them before the deadline, or is gone.
        """
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(b"".join(_LENGTH.pack(len(each)) + each for each in messages))
        except TimeoutError as error:
            raise self._too_late() from error
        except OSError as error:
            raise EngineError(f"The game is gone ({self._waits_for}): {error}.") from error

    def receive(self) -> bytes:
        """Receive a message of any length up to 64 MiB.

        Raises:
            EngineError: If it does not arrive before the deadline, is longer, or the game is gone.
        """
        length = self._length()
        if length > _LARGEST_MESSAGE:
            raise EngineError(f"The game announced a message of {length} bytes; that is no answer.")
        message = bytearray(length)
        self._fill(memoryview(message))
        return bytes(message)

    def receive_into(self, array: NDArray[np.uint8]) -> bool:
        """Receive a message of exactly the array's length, or an empty one.

        Returns:
            Whether it was not empty.

        Raises:
            EngineError: As `receive`, or if it has another length.
        """
        length = self._length()
        if length not in (0, array.size):
            raise EngineError(
                f"The game sent a frame of {length} bytes instead of {array.size}: its window has "
                "another size than minecraft's render_size, or the connection is out of step."
            )
        if length:
            self._fill(array.data)
        return length > 0

    def receive_struct(self, layout: struct.Struct) -> tuple:
        """Receive a message of a fixed layout.

        Raises:
            EngineError: As `receive`, or if it has another length.
        """
        message = self.receive()
        if len(message) != layout.size:
            raise EngineError(
                f"The game answered {self._waits_for} with {len(message)} bytes instead of "
                f"{layout.size}."
            )
        return layout.unpack(message)

    def close(self) -> None:
        """Tell the game and close; may be called twice."""
        with contextlib.suppress(OSError):
            self._socket.settimeout(_SECONDS_TO_SAY_GOODBYE)
            self._socket.sendall(_LENGTH.pack(len(_GOODBYE)) + _GOODBYE)
        self._socket.close()

    def _length(self) -> int:
        self._fill(memoryview(self._header))
        return _LENGTH.unpack(self._header)[0]

    def _fill(self, view: memoryview) -> None:
        """Receive exactly as many bytes as the view has."""
        received = 0
        while received < len(view):
            try:
                self._socket.settimeout(self._left())
                count = self._socket.recv_into(view[received:])
            except TimeoutError as error:
                raise self._too_late() from error
            except OSError as error:
                raise EngineError(f"The game is gone ({self._waits_for}): {error}.") from error
            if count == 0:
                raise EngineError(f"The game has closed the connection ({self._waits_for}).")
            received += count

    def _left(self) -> float:
        """Return the seconds left."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _too_late(self) -> EngineError:
        return EngineError(f"The game has not answered in time ({self._waits_for}).")
