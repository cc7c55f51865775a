"""Only our page, with the token, is served, and only what belongs to it."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from rllib_minestudio.errors import WatchError
from rllib_minestudio.watch.catalogue import Catalogue
from rllib_minestudio.watch.protocol import LARGEST_MESSAGE
from rllib_minestudio.watch.request import WatchRequest
from rllib_minestudio.watch.server import BAD_MESSAGE, FULL, MOST_SESSIONS, TAKEN_OVER, WatchServer
from tests.watch.conftest import served, wait_until, write_task


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    request = WatchRequest(source=str(write_task(folder)), out=str(folder / "played"))
    with served(Catalogue(request)) as server:
        yield server


def get(server, path, method="GET", body=None, **headers):
    """The status and headers of an answer; `path` follows the token unless it begins with a /."""
    at = urlsplit(server.address)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path if path.startswith("/") else at.path + path, body, named)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def tab(server, name="tab", origin=None, path="socket"):
    at = urlsplit(server.address)
    address = f"ws://{at.netloc}{at.path}{path}?session={name}"
    origin = f"http://{at.netloc}" if origin is None else origin
    return connect(address, origin=origin or None, max_size=None)


def test_the_page_is_served_and_loads_nothing_from_elsewhere(server):
    for name, kind in (("", "text/html"), ("page.js", "text/javascript"), ("page.css", "text/css")):
        status, headers, body = get(server, name)
        assert status == 200 and headers["content-type"].startswith(kind)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert b"http://" not in body.replace(b"http://www.w3.org/2000/svg", b"")
        assert b"https://" not in body and b"innerHTML" not in body


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/socket", "/page.js", "/index.html", "/x/page.js", "//page.js"),
        *("/%2e%2e/page.js", "/../../../../etc/passwd"),
    ],
)
def test_without_the_token_nothing_is_served(server, path):
    assert get(server, path)[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        *("../page.js", "..%2fserver.py", "%2e%2e/server.py", "page/page.js", "server.py"),
        *("/etc/passwd", "page.js/../../server.py", "played", "page.js%00", "socket"),
    ],
)
def test_no_path_leads_to_another_file(server, path):
    assert get(server, path)[0] in (403, 404)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example:80"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_other_sites_and_names_are_refused(server, headers):
    assert get(server, "", **headers)[0] == 403


def test_a_link_to_the_page_can_be_followed_from_anywhere(server):
    followed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "document"}
    assert get(server, "", **followed)[0] == 200
    assert get(server, "/", **followed)[0] == 403  # still not without the token


@pytest.mark.parametrize("origin", ["http://attacker.example", "null", ""])
def test_a_socket_of_another_origin_or_of_none_is_refused(server, origin):
    with pytest.raises(InvalidStatus) as refused:
        tab(server, origin=origin or None) if origin else connect(
            server.address.replace("http", "ws") + "socket"
        )
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_reading_is_answered(server, method):
    assert get(server, "", method)[0] == 404


def test_a_body_of_a_hundred_megabytes_is_not_read(server):
    at = urlsplit(server.address)
    with socket.create_connection((at.hostname, at.port), timeout=20) as line:
        head = f"POST {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nContent-Length: 100000000\r\n\r\n"
        line.sendall(head.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 404")
        sent = 0
        with pytest.raises(OSError):
            while sent < 100_000_000:
                sent += line.send(bytes(65536))
        assert sent < 50_000_000
    assert get(server, "")[0] == 200


@pytest.mark.parametrize(
    "message",
    [
        *("", "{", "[]", "{}", "null", '{"run": "yes"}', '{"run": true, "step": 1}', '{"fly": 1}'),
        *('{"step": 1e9}', '{"speed": 1e9}', '{"seek": -1}', '{"hand": {"keys": ["fly"]}}'),
        *('{"hand": {"keys": [], "turn": [1e300, 0]}}', '{"hand": {"keys": [], "turn": [NaN, 0]}}'),
        *('{"open": {"entries": []}}', '{"keep": {"agent": ""}}', b"\x00\x01"),
    ],
)
def test_messages_that_the_page_does_not_send_end_the_connection(server, message):
    with tab(server, "bad") as socket, pytest.raises(ConnectionClosed) as closed:
        socket.send(message)
        while True:
            socket.recv(timeout=20)
    assert closed.value.rcvd.code == BAD_MESSAGE
    assert get(server, "")[0] == 200


@pytest.mark.parametrize("size", [LARGEST_MESSAGE + 1, 100_000_000])
def test_large_messages_end_the_connection(server, size):
    with pytest.raises((ConnectionClosed, OSError)), tab(server, "bad") as socket:
        socket.send("x" * (size % 2**16 or 2**16) for _ in range(size // 2**16 + 1))
        while True:
            socket.recv(timeout=20)
    assert get(server, "")[0] == 200


def test_a_failure_is_told_and_the_session_goes_on(server):
    with tab(server, "bad") as socket:
        socket.send(json.dumps({"open": {"entries": ["nothing"]}}))
        texts = []
        wait_until(lambda: texts.append(socket.recv(timeout=20)) or "failure" in texts[-1])
        assert "no such entry" in texts[-1]
        socket.send(json.dumps({"refresh": True}))
        assert "catalogue" in socket.recv(timeout=20)


def test_a_tab_that_comes_back_finds_its_session_and_one_that_takes_over_gets_it(server):
    with tab(server, "mine") as socket:
        listed = json.loads(socket.recv(timeout=20))["catalogue"]
        key = next(e["key"] for e in listed["entries"] if e["kind"] == "play")
        socket.send(json.dumps({"open": {"entries": [key], "seed": 6}}))
        wait_until(lambda: isinstance(socket.recv(timeout=20), bytes))
    with tab(server, "mine") as again:
        told = []  # a picture that was under way may come first
        wait_until(lambda: told.append(again.recv(timeout=20)) or "catalogue" in str(told[-1]))
        assert json.loads(told[-1])["catalogue"]["open"] == [key]
        with tab(server, "mine") as other:
            wait_until(lambda: "catalogue" in str(other.recv(timeout=20)))
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    again.recv(timeout=20)
            assert closed.value.rcvd.code == TAKEN_OVER


def test_tabs_are_limited_and_one_that_has_gone_makes_room(server):
    def is_let_in(name):
        with tab(server, name) as late:
            try:
                return "catalogue" in late.recv(timeout=20)
            except ConnectionClosed as closed:
                assert closed.rcvd.code == FULL
                return False

    with ExitStack() as tabs:
        for i in range(MOST_SESSIONS):
            assert "catalogue" in tabs.enter_context(tab(server, f"tab{i}")).recv(timeout=20)
        assert not is_let_in("more")
    wait_until(lambda: is_let_in("later"))


def test_the_session_without_a_tab_for_longest_makes_room_for_good(server):
    """Its end is not still to come, which would be that of the next session of its name."""
    seats = server._sessions.seats
    with ExitStack() as tabs:
        opened = {}
        for i in range(MOST_SESSIONS):
            opened[f"seat{i}"] = tabs.enter_context(tab(server, f"seat{i}"))
            assert "catalogue" in opened[f"seat{i}"].recv(timeout=20)
        for name in ("seat3", "seat1"):
            opened[name].close()
            wait_until(lambda name=name: seats[name].tab is None)
        longest = seats["seat3"]
        assert "catalogue" in tabs.enter_context(tab(server, "newcomer")).recv(timeout=20)
        assert "seat3" not in seats and "seat1" in seats
        assert longest.expiry.cancelled()


def test_a_port_in_use_is_told(server, catalogue):
    with pytest.raises(WatchError, match="Choose another one with --port"):
        WatchServer(catalogue, urlsplit(server.address).port, 20.0)


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(WatchError, match="There is no 'nowhere'"):
        Catalogue(WatchRequest(source="nowhere"))
    with pytest.raises(WatchError, match="nothing to view"):
        Catalogue(WatchRequest(source=str(tmp_path), out=str(tmp_path / "played")))
