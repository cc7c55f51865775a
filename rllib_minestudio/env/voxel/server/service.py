"""The TCP side of the engine: connections from this machine, and the handling of messages."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rllib_minestudio.env.voxel.server.session import (
    MissionServer,
    ProtocolError,
    read_mission,
    read_seed,
    read_step,
    receive,
    send,
)

HOST = "127.0.0.1"
"""Connections come from this machine only: the protocol has no password."""

MAX_CONNECTIONS = 8
LARGEST_MESSAGE = 2**20
"""Most bytes of a message; a mission with a full inventory has a hundredth of that."""
_LONGEST_HELLO = 64
_HELLO = b"<MalmoEnv"
_STEP = re.compile(rb"<StepClient[02]>(.*)</StepClient[02] ?>", re.DOTALL)

_SECONDS_TO_HELLO = 10.0
_SECONDS_PER_MESSAGE = 30.0
"""Longest time for a message that has begun, in either direction."""

SECONDS_PER_CALL = 120.0
"""Longest time that the engine may take to answer one message. After that, it is abandoned, with
the thread that waits for it, and replaced by a new one."""

SECONDS_IDLE = 3600.0
"""Longest pause between two messages of a client, whose learner may update for minutes.

If all places are taken, a client that has not sent a message yet, or has been silent for
`_SECONDS_SPARED`, is disconnected to make room for a new one.
"""

_SECONDS_SPARED = 300.0

_OK = struct.pack("!I", 1)
_STEP_REPLY = struct.Struct("!dbb")
_NO_REWARD = 0.0
"""MineStudio's callbacks compute the rewards."""


class Service:
    """TCP server of one session, shared by all clients.

    MineStudio opens a new connection for each reset, so games are not tied to connections.

    Attributes:
        port: The port that it listens on.
        ended: Set once a client has asked the engine to exit.
    """

    def __init__(
        self,
        session: MissionServer,
        port: int,
        log: Callable[[str], None],
        seconds_per_call: float = SECONDS_PER_CALL,
    ) -> None:
        """Listen on `port`, or on a free one if it is taken or 0."""
        self.ended = threading.Event()
        self._log = log
        self._game = LockedSession(session, seconds_per_call)
        self._clients = Clients(MAX_CONNECTIONS, _SECONDS_SPARED)
        self._listener = _listen(port, log)
        self.port: int = self._listener.getsockname()[1]

    def serve(self) -> None:
        """Accept connections until a client asks the engine to exit, or `close` is called."""
        while not self.ended.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:  # from `close`, or a connection that was gone at once
                if self._listener.fileno() < 0:
                    return
                continue
            client = self._clients.admit(connection)
            if client is None:
                self._log(f"ERROR refused a connection: there are {MAX_CONNECTIONS} already")
                connection.close()
                continue
            threading.Thread(target=self._handle, args=(client,), daemon=True).start()

    def close(self) -> None:
        """Stop listening; may be called twice, and from any thread."""
        self.ended.set()
        with contextlib.suppress(OSError):  # it may be closed already
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes `serve`, which closing does not
        self._listener.close()

    def _handle(self, client: Client) -> None:
        """Serve one connection to its end; no error on it ends the engine."""
        with client.connection as connection:
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._converse(client)
            except HungError as error:
                self._log(f"ERROR {error}; a new engine takes its place")
                self._abandon(self._game)
            except ProtocolError as error:
                self._log(f"ERROR closed a connection: {error}")
            except TimeoutError:
                self._log("ERROR closed a connection that was too slow")
            except OSError as error:
                self._log(f"the connection is gone: {error}")
            except Exception as error:
                # The engine itself failed. The client sees its connection close, as after a crash.
                self._log(f"ERROR the engine failed: {type(error).__name__}: {error}")
                with self._game.locked() as session:
                    session.quit()
            finally:
                self._clients.leave(client)

    def _converse(self, client: Client) -> None:
        connection = client.connection
        hello = receive(connection, _LONGEST_HELLO, _SECONDS_TO_HELLO, _SECONDS_TO_HELLO)
        if hello is None:
            return
        if not hello.startswith(_HELLO):
            raise ProtocolError("no MalmoEnv greeting")
        while True:
            with client.waiting():
                message = receive(connection, LARGEST_MESSAGE, SECONDS_IDLE, _SECONDS_PER_MESSAGE)
            if message is None or message.startswith(b"<Disconnect"):
                return
            replies = self._answer(connection, message)
            send(connection, *replies, seconds=_SECONDS_PER_MESSAGE)
            if message.startswith(b"<Exit"):
                self.close()
                return

    def _answer(self, connection: socket.socket, message: bytes) -> tuple[bytes, ...]:
        """Carry out a message, and return the messages that answer it.

        Raises:
            ProtocolError: If the message is unknown, malformed, or out of order.
        """
        if message.startswith(b"<StepClient"):
            return self._step(message)
        if message.startswith(b"<StepServer"):
            return ()  # the second half of a tick in Minecraft; here StepClient plays all of it
        if message.startswith(b"<Peek"):
            with self._game.locked() as session:
                _check_mission(session)
                seen = session.observe()
            return seen.frame, seen.info, struct.pack("!b", seen.done)
        if message.startswith(b"<MissionInit"):
            return (self._begin(connection, message),)
        if message.startswith(b"<Quit"):
            with self._game.locked() as session:
                session.quit()
            return (_OK,)
        if message.startswith(b"<Find"):
            return (struct.pack("!I", self.port),)
        if message.startswith(b"<Exit"):
            return (_OK,)
        raise ProtocolError(f"the unknown message {message[:40]!r}")

    def _begin(self, connection: socket.socket, document: bytes) -> bytes:
        """Receive the token that follows a MissionInit document, and start the mission."""
        mission = read_mission(document)
        token = receive(connection, LARGEST_MESSAGE, _SECONDS_PER_MESSAGE, _SECONDS_PER_MESSAGE)
        if token is None:
            raise ProtocolError("a mission without its token")
        seed = read_seed(token)
        with self._game.locked() as session:
            session.begin(mission, seed)
        return _OK

    def _step(self, message: bytes) -> tuple[bytes, bytes, bytes]:
        match = _STEP.fullmatch(message)
        if match is None:
            raise ProtocolError(f"the malformed step {message[:40]!r}")
        try:
            step = read_step(match[1].decode())
        except UnicodeDecodeError as error:
            raise ProtocolError("a step that is not UTF-8") from error
        with self._game.locked() as session:
            _check_mission(session)
            seen = session.step(step)
        sent = 1
        return seen.frame, _STEP_REPLY.pack(_NO_REWARD, seen.done, sent), seen.info

    def _abandon(self, game: LockedSession) -> None:
        """Replace an engine that hangs."""
        self._clients.drop_thread(game.caller)
        successor = game.successor(self._log)
        if self._game is game:
            self._game = successor


def _check_mission(session: MissionServer) -> None:
    if not session.is_playing:
        raise ProtocolError("a step or peek without a mission")


def _listen(port: int, log: Callable[[str], None]) -> socket.socket:
    """Return a socket listening on `port` of this machine, or on a free one if it is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        log(f"WARN port {port} cannot be used ({error}); taking a free one")
        listener.bind((HOST, 0))
    listener.listen()
    return listener


# ----------------------------------------------------------------------- taking turns at the engine
# One call at a time, and a limited number of connections.


class HungError(Exception):
    """The engine has been busy with one call for too long."""


class LockedSession:
    """A session that one thread at a time may use."""

    def __init__(self, session: MissionServer, seconds_per_call: float) -> None:
        """Guard a session; a call longer than `seconds_per_call` counts as hanging."""
        self._session = session
        self._seconds = seconds_per_call
        self._turn = threading.Lock()
        self._successor: LockedSession | None = None
        self._succession = threading.Lock()
        self.caller: int | None = None

    @contextlib.contextmanager
    def locked(self) -> Iterator[MissionServer]:
        """Lock the session for the calling thread.

        Raises:
            HungError: If another thread does not release it in time.
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
        """Return the session that replaces this one, which hangs; the same one at each call."""
        with self._succession:
            if self._successor is None:
                self._successor = LockedSession(MissionServer(log), self._seconds)
            return self._successor


@dataclass(eq=False)
class Client:
    """A connection.

    Attributes:
        connection: Its socket.
        messages: Number of messages that it has sent after its greeting.
        waits_since: Time of `time.monotonic` since which it is silent; None while it is answered.
        thread: Id of the thread that serves it.
    """

    connection: socket.socket
    messages: int = 0
    waits_since: float | None = field(default_factory=time.monotonic)
    thread: int | None = None

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Mark the client as silent until its next message."""
        self.thread, self.waits_since = threading.get_ident(), time.monotonic()
        yield
        self.messages, self.waits_since = self.messages + 1, None


class Clients:
    """The current connections, at most `most`."""

    def __init__(self, most: int, seconds_spared: float) -> None:
        """Start without connections.

        Args:
            most: Most connections at once.
            seconds_spared: How long a client that has sent messages may be silent before it has to
                make room for a new one.
        """
        self._most = most
        self._seconds_spared = seconds_spared
        self._clients: list[Client] = []
        self._lock = threading.Lock()

    def admit(self, connection: socket.socket) -> Client | None:
        """Admit a connection, if necessary in place of an idle one; None if there is no room."""
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
        """Free a client's place; may be called twice."""
        with self._lock:
            if client in self._clients:
                self._clients.remove(client)

    def drop_thread(self, thread: int | None) -> None:
        """Close the connection that a thread serves, as it will not be answered any more."""
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
        with contextlib.suppress(OSError):  # it may be closed already
            client.connection.shutdown(socket.SHUT_RDWR)
