"""Starting Ray: which processes that takes, and what a person reads when it cannot be started."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.experiments.ray_session import ray_session
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
