"""Serves the page and its socket, on loopback, to whoever has the token.

The address that is printed begins with the token, and so do all others: a request without it, from
the page of another site, or under another name of this machine (DNS rebinding), is refused. No path
of a request is ever a path on disk.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rllib_minestudio.errors import DependencyError, WatchError
from rllib_minestudio.watch.protocol import LARGEST_MESSAGE, parse_message, text_message
from rllib_minestudio.watch.session import Session, Views

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Mount, Route, WebSocketRoute
    from starlette.websockets import WebSocket, WebSocketDisconnect
except ImportError as error:
    raise DependencyError(
        f"rllib watch needs a web server, which is not installed ({error}): "
        "pip install 'rllib-minestudio[watch]'."
    ) from error

LOOPBACK = "127.0.0.1"

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Connection": "close",
}
"""Headers of every response: nothing is loaded from elsewhere, and nobody else may load it."""

MOST_SESSIONS = 8
"""Tabs that are served at the same time."""

SECONDS_KEPT = 600.0
"""For how long the session of a tab that has gone is kept, in case the tab comes back."""

TAKEN_OVER, FULL, BAD_MESSAGE = 4001, 4002, 4003
"""Codes with which a socket is closed: another tab has taken over the session; there are too many;
the page sent what it cannot have sent."""

Scope = MutableMapping[str, Any]


class Guard:
    """Refuses requests that do not come from our page, before anything reads them.

    Args:
        app: What answers the others.
        hosts: Names of this server, with its port.
        token: What each path begins with.
    """

    def __init__(self, app: Any, hosts: frozenset[str], token: str) -> None:
        self._app, self._hosts, self._token = app, hosts, token

    async def __call__(
        self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]
    ) -> None:
        """Answer a request."""
        if scope["type"] not in ("http", "websocket") or self._is_ours(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            text = "Open the address that rllib watch has printed.\n"
            await PlainTextResponse(text, 403, HEADERS)(scope, receive, send)

    def _is_ours(self, scope: Scope) -> bool:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        hosts = [value.decode("latin-1") for value in headers.get(b"host", [])]
        origins = [value.decode("latin-1") for value in headers.get(b"origin", [])]
        token = scope["path"].lstrip("/").partition("/")[0]
        return (
            secrets.compare_digest(token.encode(), self._token.encode())
            and len(hosts) == 1
            and hosts[0] in self._hosts
            # A browser names the origin of every socket's page; a program has no reason to.
            and origins == [f"http://{hosts[0]}"] * len(origins)
            and (len(origins) == 1 or scope["type"] == "http")
            and self._is_asked_for(headers)
        )

    def _is_asked_for(self, headers: dict[bytes, list[bytes]]) -> bool:
        """Whether our page asks, or a person does, who may have followed a link to it."""
        site = headers.get(b"sec-fetch-site", [b"none"])[0]
        is_followed = headers.get(b"sec-fetch-dest", [b""])[0] == b"document"
        return site in (b"none", b"same-origin") or is_followed


@dataclass
class Seat:
    """A session, and the tab that looks at it.

    Attributes:
        session: The session.
        tab: The tab's socket; None if it has gone.
        expiry: Ends the session some time after the tab has gone.
    """

    session: Session
    tab: WebSocket | None = None
    expiry: asyncio.TimerHandle | None = None


@dataclass
class Sessions:
    """The sessions of all tabs, by the names that the tabs give them.

    Attributes:
        make: Makes a session.
        seats: The sessions.
    """

    make: Callable[[], Session]
    seats: dict[str, Seat] = field(default_factory=dict)

    async def serve(self, tab: WebSocket) -> None:
        """Serve a tab until it goes; its session is kept for a while."""
        name = tab.query_params.get("session", "")[:64]
        await tab.accept()
        if name not in self.seats:
            await self._make_room()
        if name not in self.seats:  # no other socket of that name has come meanwhile
            if len(self.seats) >= MOST_SESSIONS:
                await tab.close(FULL)
                return
            self.seats[name] = Seat(self.make())
        seat = self.seats[name]
        if seat.expiry is not None:
            seat.expiry.cancel()
        before, seat.tab = seat.tab, tab
        if before is not None:
            await before.close(TAKEN_OVER)
        news, loop = asyncio.Event(), asyncio.get_running_loop()

        def on_news() -> None:
            with suppress(RuntimeError):  # the server has just stopped
                loop.call_soon_threadsafe(news.set)

        seat.session.attach(on_news)
        sender = asyncio.create_task(_send(tab, seat.session, news))
        try:
            await _receive(tab, seat.session)
        finally:
            sender.cancel()
            if seat.tab is tab:
                seat.tab = None
                seat.session.detach()
                seat.expiry = loop.call_later(SECONDS_KEPT, self._expire, name)

    async def _make_room(self) -> None:
        """End the session that has been without a tab for longest, if there are too many."""
        left = {
            seat.expiry.when(): name
            for name, seat in self.seats.items()
            if seat.tab is None and seat.expiry is not None
        }
        if len(self.seats) >= MOST_SESSIONS and left:
            seat = self.seats.pop(left[min(left)])
            if seat.expiry is not None:
                seat.expiry.cancel()  # its name may come back, with another session
            await asyncio.to_thread(seat.session.close)

    def _expire(self, name: str) -> None:
        seat = self.seats.pop(name, None)
        if seat is not None:
            asyncio.get_running_loop().run_in_executor(None, seat.session.close)

    def close(self) -> None:
        """End all sessions."""
        for seat in self.seats.values():
            seat.session.close()
        self.seats.clear()


async def _send(tab: WebSocket, session: Session, news: asyncio.Event) -> None:
    """Send what the session has for the tab, as fast as the tab takes it."""
    while True:
        await news.wait()
        news.clear()
        while (message := session.take()) is not None:
            if isinstance(message, bytes):
                await tab.send_bytes(message)
            else:
                await tab.send_text(message)


async def _receive(tab: WebSocket, session: Session) -> None:
    """Pass on what the tab sends, until it goes or sends what our page does not."""
    try:
        while True:
            received = await tab.receive()
            if received["type"] == "websocket.disconnect":
                return
            try:
                message = parse_message(received.get("text") or "")
            except WatchError as error:
                await tab.send_text(text_message("failure", str(error)))
                await tab.close(BAD_MESSAGE)
                return
            if not session.tell(message):
                await tab.close(BAD_MESSAGE)
                return
    except (WebSocketDisconnect, RuntimeError):  # it has gone meanwhile
        return


def make_app(sessions: Sessions, hosts: frozenset[str], token: str) -> Guard:
    """Return the ASGI application.

    Args:
        sessions: The sessions of all tabs.
        hosts: Names of the server, with its port.
        token: What each path begins with.
    """

    def file(path: Path) -> Route:
        content, kind = path.read_bytes(), TYPES[path.suffix]
        name = "" if path.name == "index.html" else path.name
        headers = {**HEADERS, "Content-Type": f"{kind}; charset=utf-8"}

        async def answer(_: Any) -> Response:
            return Response(content, headers=headers)

        return Route(f"/{name}", answer, methods=["GET"])

    async def missing(*_: Any) -> Response:
        return PlainTextResponse("There is no such page.\n", 404, HEADERS)

    files = [file(path) for path in sorted(PAGE.iterdir()) if path.suffix in TYPES]
    app = Starlette(
        routes=[Mount(f"/{token}", routes=[*files, WebSocketRoute("/socket", sessions.serve)])],
        exception_handlers={404: missing, 405: missing},
    )
    return Guard(app, hosts, token)


class WatchServer:
    """The server, listening but not answering yet.

    Attributes:
        address: The page's address, with the token.

    Args:
        views: Where views come from.
        port: Port on loopback; 0 takes a free one.
        pictures_per_second: Most pictures that a session composes in a second.

    Raises:
        WatchError: The port cannot be used.
    """

    def __init__(self, views: Views, port: int, pictures_per_second: float) -> None:
        self._listener = _listen(port)
        port, token = self._listener.getsockname()[1], secrets.token_urlsafe(24)
        self.address = f"http://{LOOPBACK}:{port}/{token}/"
        self._sessions = Sessions(lambda: Session(views, pictures_per_second))
        hosts = frozenset(f"{name}:{port}" for name in (LOOPBACK, "localhost"))
        config = uvicorn.Config(
            make_app(self._sessions, hosts, token),
            log_level="error",
            access_log=False,
            lifespan="off",
            ws="websockets-sansio",
            ws_max_size=LARGEST_MESSAGE,
            ws_per_message_deflate=False,  # pictures are compressed already
            limit_concurrency=8 * MOST_SESSIONS,
            timeout_graceful_shutdown=1,
            server_header=False,
            date_header=False,
            proxy_headers=False,
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Answer until the process is interrupted, or `stop` is called."""
        try:
            self._server.run(sockets=[self._listener])
        except KeyboardInterrupt:  # which uvicorn raises again when it has stopped
            pass
        finally:
            self._sessions.close()
            self._listener.close()

    def stop(self) -> None:
        """Let `run` return; may be called from any thread."""
        self._server.should_exit = True


def _listen(port: int) -> socket.socket:
    """Return a socket that listens on loopback.

    Raises:
        WatchError: The port cannot be used.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise WatchError(
            f"port {port} of {LOOPBACK} cannot be used: {error.strerror}. Choose another one with "
            "--port, or leave it out to take a free one."
        ) from error
    listener.listen()
    return listener
