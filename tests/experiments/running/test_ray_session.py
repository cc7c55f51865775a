"""Starting Ray: which processes that takes, and what a person reads when it cannot be started."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.experiments import ray_session as session
from rllib_minestudio.experiments.ray_session import ray_session, require_cluster
from tests.processes import run_python

PROCESSES = """
import ray
from rllib_minestudio.experiments import ray_session

ray_session.set_environment()
with ray_session.ray_session(1, {verbose}):
    assert ray.get(ray.remote(lambda: 3).remote()) == 3
    print(*ray._private.worker._global_node.all_processes)
"""


@pytest.mark.parametrize("verbose", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_processes_of_no_use_are_not_started(verbose):
    status, output = run_python("-c", PROCESSES.format(verbose=verbose))
    assert status == 0, output
    started = output.split()
    assert "raylet" in started
    assert [n in started for n in ("monitor", "dashboard", "log_monitor")] == 3 * [verbose]


def test_a_ray_that_runs_already_is_left_alone(local_ray):
    import ray

    with pytest.raises(MineStudioError, match="runs Ray already"), ray_session(1, verbose=False):
        pass
    assert ray.is_initialized()


def test_it_is_tried_again_before_it_is_an_error():
    module = "rllib_minestudio.experiments.ray_session"
    program = f"from {module} import *\nwith ray_session(1, False): pass"
    where_nothing_can_be_written = {**os.environ, "RAY_TMPDIR": "/proc/nowhere"}
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=where_nothing_can_be_written,
        capture_output=True,
        text=True,
    )
    assert result.stdout.count("starting it again") == 2
    assert "Ray could not be started on this machine, 3 times" in result.stderr


@pytest.mark.parametrize(
    "address, origin, message",
    [
        ("127.0.0.1:1", "RAY_ADDRESS", r"RAY_ADDRESS\): Connection refused.* unset RAY_ADDRESS"),
        ("127.0.0.1:1", "--address", r"--address\): Connection refused.* leave the address out"),
        ("ray://127.0.0.1:1", "--address", "Connection refused"),
        ("my_cluster", "--address", "an address is HOST:PORT, or `auto`"),
        ("nowhere.invalid:6379", "--address", "not known|failure in name resolution"),
    ],
)
def test_an_address_at_which_nobody_answers_is_given_up_at_once(address, origin, message):
    start = time.monotonic()
    with pytest.raises(MineStudioError, match=f"No Ray cluster answers at '{address}'.*{message}"):
        require_cluster(address, origin)
    assert time.monotonic() - start < 10.0


def test_something_else_than_a_cluster_is_given_up_as_well(monkeypatch):
    monkeypatch.setattr(session, "PROBE_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(MineStudioError, match="something answers there, but not a Ray cluster"):
            require_cluster(address)
