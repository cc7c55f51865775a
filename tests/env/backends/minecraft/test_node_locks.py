"""Ports and turns between the processes of a node: nobody waits for the dead."""

import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from rllib_minestudio.env.backends.minecraft import process as node_locks
from rllib_minestudio.errors import EngineError

FIRST = 29000


@pytest.fixture(autouse=True)
def node(tmp_path, monkeypatch):
    """A node of this test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def other_process(code):
    """Run code in another process, which says so when it is done and then sleeps."""
    package = "rllib_minestudio.env.backends.minecraft"
    script = f"from {package} import process as node_locks\n{code}\nprint('done', flush=True)"
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
    locks = [node_locks.claim_port(FIRST, worker) for worker in (0, 0, 3, 128)]
    ports = [node_locks.port_of(lock) for lock in locks]
    assert ports == [FIRST, FIRST + 1, FIRST + 3 * node_locks.PORTS_PER_WORKER, FIRST + 2]


def test_a_port_that_something_listens_on_is_left_out():
    with socket.socket() as other:
        other.bind(("127.0.0.1", FIRST))
        other.listen()
        assert node_locks.port_of(node_locks.claim_port(FIRST, 0)) == FIRST + 1
    assert node_locks.port_of(node_locks.claim_port(FIRST, 0)) == FIRST


def test_a_released_port_is_claimed_again():
    lock = node_locks.claim_port(FIRST, 0)
    lock.release()
    assert node_locks.port_of(node_locks.claim_port(FIRST, 0)) == FIRST


def test_a_killed_holder_gives_its_port_back_and_is_known_to_have_died():
    holder = other_process(f"lock = node_locks.claim_port({FIRST}, 0)\nlock.write({{'group': 77}})")
    assert node_locks.port_of(node_locks.claim_port(FIRST, 0)) == FIRST + 1
    assert list(node_locks.abandoned()) == []
    end(holder)
    (lock,) = node_locks.abandoned()
    assert (node_locks.port_of(lock), lock.read()) == (FIRST, {"group": 77})
    lock.clear()
    lock.release()
    assert list(node_locks.abandoned()) == []


def test_a_note_that_was_not_finished_is_none():
    lock = node_locks.claim_port(FIRST, 0)
    lock.path.write_text('{"group": 7')
    assert lock.read() == {}


def test_turns_are_limited_and_end_with_their_holder():
    holder = other_process("turn = node_locks.turn_to_start(1, 5); turn.__enter__()")
    refused = pytest.raises(EngineError, match=r"one of 1 turns.*starts_at_once")
    with refused, node_locks.turn_to_start(1, timeout_s=0.1):
        raise AssertionError("two at once")
    with node_locks.turn_to_start(2, timeout_s=0.1):
        pass
    end(holder)
    started = time.monotonic()
    with node_locks.turn_to_start(1, timeout_s=5):
        pass
    assert time.monotonic() - started < 1


def test_a_turn_ends_with_an_exception():
    with pytest.raises(ZeroDivisionError), node_locks.turn_to_start(1, timeout_s=1):
        raise ZeroDivisionError
    with node_locks.turn_to_start(1, timeout_s=0.1):
        pass


@pytest.mark.parametrize("others", [0o020, 0o002])
def test_a_folder_that_others_can_write_to_is_refused(others):
    node_locks.node_directory().chmod(0o700 | others)
    with pytest.raises(EngineError, match="nobody else can write to"):
        node_locks.node_directory()


def test_a_link_in_place_of_the_folder_is_refused(tmp_path):
    folder = node_locks.node_directory()
    folder.rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "theirs")
    with pytest.raises(EngineError, match="must be a folder of yours"):
        node_locks.node_directory()
