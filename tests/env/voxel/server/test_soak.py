"""Hundreds of missions in one engine process: memory, handles and threads stay as they are."""

import subprocess
import time
from pathlib import Path

import pytest

from tests.env.voxel.server.raw_client import RawClient
from tests.env.voxel.server.test_process import PATIENCE, SERVER, wait_until_ready

MISSIONS = 300
SETTLED = 100


def usage(pid):
    """Resident memory in MiB, open handles and threads of a process."""
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    handles = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return int(status["VmRSS"].split()[0]) / 1024, handles, int(status["Threads"])


def comes_down_to(pid, handles, threads):
    """Whether no more of both is left, soon: the last connection's thread may be about to end."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        _, handles_now, threads_now = usage(pid)
        if handles_now <= handles and threads_now <= threads:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_hundreds_of_missions_leave_nothing_behind():
    server = subprocess.Popen([*SERVER, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        port = wait_until_ready(server.stdout)
        for mission in range(MISSIONS):
            with RawClient(port) as client:  # a new connection each, as MineStudio has
                client.begin(seed=mission)
                client.peek()
                client.step("chat /summon cow ~2 ~ ~", "forward 1", "camera 1.0 5.0")
                client.send(b"<Disconnect/>")
                assert client.is_closed()
            if mission == SETTLED:
                memory, handles, threads = usage(server.pid)
        assert usage(server.pid)[0] < memory + 20
        assert comes_down_to(server.pid, handles, threads)
        with RawClient(port) as client:
            assert client.ask(b"<Exit>NOW</Exit>") == 1
        assert server.wait(PATIENCE) == 0
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
