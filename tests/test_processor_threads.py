"""How many threads there are, that those that wait sleep, and the priority of Ray's workers."""

import logging
import os
import subprocess
import sys

import pytest
import ray
import torch

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.doctor import threads as look_at_threads
from rllib_minestudio.foundation import processes
from rllib_minestudio.foundation.processes import (
    NICENESS,
    THREADS,
    WAIT_POLICY,
    share_cores,
    thread_problem,
    threads_beside,
    with_one_thread,
)
from tests.processes import NOT_FORKED

IMPORTED = (
    "import rllib_minestudio, os, sys; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
)


def says_after_import(**environment):
    unset = {name: value for name, value in os.environ.items() if name not in WAIT_POLICY}
    command = [sys.executable, "-c", IMPORTED]
    return subprocess.run(
        command, env={**unset, **environment}, capture_output=True, text=True
    ).stdout.split()


def test_the_import_lets_waiting_threads_sleep_before_torch_is_there():
    assert says_after_import() == ["PASSIVE", "False"]


def test_what_the_environment_says_is_left_alone(monkeypatch):
    for name in (*WAIT_POLICY, NICENESS):
        monkeypatch.setenv(name, "of the user")
    processes.set_processor_environment()
    assert all(os.environ[name] == "of the user" for name in (*WAIT_POLICY, NICENESS))
    assert with_one_thread({}) == {THREADS: "1"}
    assert with_one_thread({THREADS: "3"}) == {THREADS: "3"}


def test_ray_workers_sleep_too_and_compute_with_the_cpus_that_they_were_given(local_ray):
    @ray.remote
    def worker():
        import torch

        return os.environ["OMP_WAIT_POLICY"], torch.get_num_threads()

    policy = os.environ["OMP_WAIT_POLICY"]
    threads = int(os.environ.get(THREADS, 2))  # with pytest's workers it is 1
    assert ray.get(worker.options(num_cpus=2, runtime_env=NOT_FORKED).remote()) == (policy, threads)


def test_ray_workers_have_the_priority_of_the_process_that_started_ray(local_ray):
    @ray.remote
    def niceness():
        return os.getpriority(os.PRIO_PROCESS, 0)

    assert ray.get(niceness.options(runtime_env=NOT_FORKED).remote()) == os.getpriority(
        os.PRIO_PROCESS, 0
    )


@pytest.mark.parametrize(("cores", "threads"), [(16, 13), (3, 1), (2, 1)])
def test_runners_and_learners_have_their_cores(cores, threads):
    config = MineStudioPPOConfig().env_runners(num_env_runners=2).learners(num_learners=1)
    assert config.cpus_of_other_processes == 3
    assert threads_beside(config.cpus_of_other_processes, cores) == threads


@pytest.fixture
def threads_set(monkeypatch):
    """Numbers of threads that torch is told."""
    told = []
    monkeypatch.setattr(torch, "set_num_threads", told.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(processes, "machine_cpus", lambda: 8)
    monkeypatch.delenv(THREADS, raising=False)
    return told


def test_this_process_takes_what_the_others_leave(threads_set):
    share_cores(other_cpus=0)
    assert threads_set == []
    share_cores(other_cpus=2)
    assert threads_set == [6]


def test_threads_that_the_user_took_away_stay_away(threads_set, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    share_cores(other_cpus=2)
    assert threads_set == []


def test_a_number_of_threads_in_the_environment_counts(threads_set, monkeypatch):
    monkeypatch.setenv(THREADS, "3")
    share_cores(other_cpus=2)
    assert threads_set == []


def test_a_torch_that_came_first_is_told_about(threads_set, monkeypatch, caplog):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setattr(processes, "_came_too_late", False)  # and is put back
    with caplog.at_level(logging.WARNING):
        processes.set_processor_environment()  # torch is imported above
        share_cores(other_cpus=2)
    assert "Import rllib_minestudio first, or set OMP_WAIT_POLICY=PASSIVE" in caplog.text


@pytest.mark.parametrize(
    ("environment", "threads", "problem"),
    [
        (WAIT_POLICY, 2, ""),
        ({"OMP_WAIT_POLICY": "active"}, 2, "OMP_WAIT_POLICY=active lets threads spin"),
        ({**WAIT_POLICY, "GOMP_SPINCOUNT": "300000"}, 2, "GOMP_SPINCOUNT=300000 lets threads"),
        ({"KMP_BLOCKTIME": "200"}, 2, "KMP_BLOCKTIME=200 lets threads spin"),
        ({"OMP_WAIT_POLICY": "active"}, 1, ""),  # one thread waits for nobody
        ({"RAY_worker_niceness": "15"}, 1, "RAY_worker_niceness=15 lets Ray's workers wait"),
        ({"RAY_worker_niceness": "0"}, 2, ""),
        (WAIT_POLICY, 3, "3 threads on 2 cores wait for each other"),
    ],
)
def test_what_makes_threads_slow_is_named(environment, threads, problem):
    found = thread_problem(environment, threads, cores=2)
    assert found.startswith(problem) and bool(found) == bool(problem)


def test_the_doctor_says_how_to_mend_it(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(processes, "machine_cpus", lambda: 2)
    for name, value in WAIT_POLICY.items():
        monkeypatch.setenv(name, value)
    assert look_at_threads().ok and "OMP_WAIT_POLICY=PASSIVE" in look_at_threads().detail
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    health = look_at_threads()
    assert not health.ok
    assert health.fix == "unset it"
