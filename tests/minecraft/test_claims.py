"""Ports and turns between the processes of a node: nobody waits for the dead."""

import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from rllib_minestudio.env.minecraft import claims
from rllib_minestudio.errors import EngineError

FIRST = 29000


@pytest.fixture(autouse=True)
def node(tmp_path, monkeypatch):
    """A node of this test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def other_process(code):
    """Run code in another process, which says so when it is done and then sleeps."""
    script = f"from rllib_minestudio.env.minecraft import claims\n{code}\nprint('done', flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{script}\nimport time; time.sleep(60)"], stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"done\n"
    return process


def end(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_workers_have_ranges_of_their_own():
    locks = [claims.claim_port(FIRST, worker) for worker in (0, 0, 3, 128)]
    ports = [claims.port_of(lock) for lock in locks]
    assert ports == [FIRST, FIRST + 1, FIRST + 3 * claims.PORTS_PER_WORKER, FIRST + 2]


def test_a_port_that_something_listens_on_is_left_out():
    with socket.socket() as other:
        other.bind(("127.0.0.1", FIRST))
        other.listen()
        assert claims.port_of(claims.claim_port(FIRST, 0)) == FIRST + 1
    assert claims.port_of(claims.claim_port(FIRST, 0)) == FIRST


def test_a_released_port_is_claimed_again():
    lock = claims.claim_port(FIRST, 0)
    lock.release()
    assert claims.port_of(claims.claim_port(FIRST, 0)) == FIRST


def test_a_killed_holder_gives_its_port_back_and_is_known_to_have_died():
    holder = other_process(f"lock = claims.claim_port({FIRST}, 0)\nlock.write({{'group': 77}})")
    assert claims.port_of(claims.claim_port(FIRST, 0)) == FIRST + 1
    assert list(claims.abandoned()) == []
    end(holder)
    (lock,) = claims.abandoned()
    assert (claims.port_of(lock), lock.read()) == (FIRST, {"group": 77})
    lock.clear()
    lock.release()
    assert list(claims.abandoned()) == []


def test_a_note_that_was_not_finished_is_none():
    lock = claims.claim_port(FIRST, 0)
    lock.path.write_text('{"group": 7')
    assert lock.read() == {}


def test_turns_are_limited_and_end_with_their_holder():
    holder = other_process("turn = claims.turn_to_start(1, 5); turn.__enter__()")
    refused = pytest.raises(EngineError, match=r"one of 1 turns.*starts_at_once")
    with refused, claims.turn_to_start(1, timeout_s=0.1):
        raise AssertionError("two at once")
    with claims.turn_to_start(2, timeout_s=0.1):
        pass
    end(holder)
    started = time.monotonic()
    with claims.turn_to_start(1, timeout_s=5):
        pass
    assert time.monotonic() - started < 1


def test_a_turn_ends_with_an_exception():
    with pytest.raises(ZeroDivisionError), claims.turn_to_start(1, timeout_s=1):
        raise ZeroDivisionError
    with claims.turn_to_start(1, timeout_s=0.1):
        pass
