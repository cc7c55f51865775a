"""Who may talk to the engine: one call at a time, and so many connections at once."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rllib_minestudio.env.voxel.server.session import MissionServer


class HungError(Exception):
    """The engine has been busy with one call for longer than any call takes."""


class LockedSession:
    """One session, which one thread at a time may use."""

    def __init__(self, session: MissionServer, seconds_per_call: float) -> None:
        """Guard a session; a call of more than `seconds_per_call` counts as hanging."""
        self._session = session
        self._seconds = seconds_per_call
        self._turn = threading.Lock()
        self._successor: LockedSession | None = None
        self._succession = threading.Lock()
        self.caller: int | None = None

    @contextlib.contextmanager
    def locked(self) -> Iterator[MissionServer]:
        """Give the session to the calling thread.

        Raises:
            HungError: Another thread has not given it back in time.
        """
        if not self._turn.acquire(timeout=self._seconds):
            raise HungError(f"a call to the engine has taken more than {self._seconds:g} s")
        self.caller = threading.get_ident()
        try:
            yield self._session
        finally:
            self.caller = None
            self._turn.release()

    def successor(self, log: Callable[[str], None]) -> LockedSession:
        """Return the game that is played instead of this one, which hangs; always the same."""
        with self._succession:
            if self._successor is None:
                self._successor = LockedSession(MissionServer(log), self._seconds)
            return self._successor


@dataclass(eq=False)
class Client:
    """A connection.

    Attributes:
        connection: Its socket.
        messages: How many it has sent after its greeting.
        waits_since: When it began to be silent, by `time.monotonic`; None while it is answered.
        thread: Which thread serves it.
    """

    connection: socket.socket
    messages: int = 0
    waits_since: float | None = field(default_factory=time.monotonic)
    thread: int | None = None

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for its next message."""
        self.thread, self.waits_since = threading.get_ident(), time.monotonic()
        yield
        self.messages, self.waits_since = self.messages + 1, None


class Clients:
    """The connections that there are, at most `most`."""

    def __init__(self, most: int, seconds_spared: float) -> None:
        """Start without any.

        Args:
            most: Connections at once.
            seconds_spared: So long a client that has done something may be silent before it has
                to make room for another one.
        """
        self._most = most
        self._seconds_spared = seconds_spared
        self._clients: list[Client] = []
        self._lock = threading.Lock()

    def admit(self, connection: socket.socket) -> Client | None:
        """Take a connection in, if need be in the place of an idle one; None: there is no room."""
        with self._lock:
            if len(self._clients) >= self._most:
                idle = [client for client in self._clients if self._may_go(client)]
                if not idle:
                    return None
                self._drop(min(idle, key=lambda c: (c.messages > 0, c.waits_since or 0.0)))
            client = Client(connection)
            self._clients.append(client)
            return client

    def leave(self, client: Client) -> None:
        """Give a client's place away; may be called twice."""
        with self._lock:
            if client in self._clients:
                self._clients.remove(client)

    def drop_thread(self, thread: int | None) -> None:
        """Close the connection that a thread serves: it will not be answered any more."""
        with self._lock:
            for client in [c for c in self._clients if c.thread == thread]:
                self._drop(client)

    def _may_go(self, client: Client) -> bool:
        since = client.waits_since
        if since is None:
            return False
        return client.messages == 0 or time.monotonic() - since > self._seconds_spared

    def _drop(self, client: Client) -> None:
        self._clients.remove(client)
        with contextlib.suppress(OSError):  # it may have gone by itself
            client.connection.shutdown(socket.SHUT_RDWR)
