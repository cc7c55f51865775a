"""What the learners of PPO and of behaviour cloning share: the optimizer's rates, and memory."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest
import torch

from rllib_minestudio.algorithms.learner.policy_learner import PolicyLearner, keep_freed_memory
from tests.processes import ROOT

MEMORY = """
import torch
from rllib_minestudio.algorithms.learner.policy_learner import keep_freed_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def kept_of(size):
    before = resident()
    blocks = [torch.ones(size // 8 // 4) for _ in range(8)]
    assert resident() - before > 0.9 * size
    del blocks
    return resident() - before

torch.ones(1)
size = 128 * 2**20
assert kept_of(size) < 0.1 * size, "glibc returns what is freed"
assert keep_freed_memory()
assert kept_of(size) > 0.9 * size
"""


def test_a_group_without_a_factor_has_the_rate_itself():
    """As in an optimizer that a subclass builds."""
    groups = [{"params": [torch.zeros(1)]}, {"params": [torch.zeros(1)], "lr_factor": 0.5}]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    PolicyLearner._set_optimizer_lr(optimizer, 0.2)
    assert [group["lr"] for group in optimizer.param_groups] == [0.2, 0.1]


def test_without_glibc_memory_is_as_it_is(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert not keep_freed_memory()


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is Linux's")
def test_memory_that_a_step_frees_is_kept_for_the_next():
    """In a process that is not forked: the one that others are forked from has trained."""
    done = subprocess.run([sys.executable, "-c", MEMORY], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
