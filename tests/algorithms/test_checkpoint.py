"""Saving, restoring elsewhere, going on: the numbers are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms import MineStudioPPO
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.weights import load_weights
from tests.algorithms.toy_envs import tiny_model
from tests.processes import ROOT, run_python

RESTORE_AND_TRAIN = """
import sys
import numpy as np, ray
from rllib_minestudio.algorithms import MineStudioPPO
from tests.algorithms.test_checkpoint import fingerprint
ray.init(
    address="local",
    num_cpus=1,
    include_dashboard=False,
    log_to_driver=False,
    _node_ip_address="127.0.0.1",
)
algorithm = MineStudioPPO.from_checkpoint(sys.argv[1])
np.savez(sys.argv[2], **fingerprint(algorithm))
kl_coeff = algorithm.train()["learners"]["default_policy"]["kl_coeff"]
np.savez(sys.argv[3], kl_coeff=kl_coeff, **fingerprint(algorithm))
"""


def fingerprint(algorithm: MineStudioPPO) -> dict[str, np.ndarray]:
    """Everything that decides how a run goes on, but for the experience under way."""
    learner = algorithm.learner_group.get_state()["learner"]
    optimizer = learner["optimizer"]["default_policy_default_optimizer"]["state"]
    numbers = {f"weights/{k}": v for k, v in learner["rl_module"]["default_policy"].items()}
    numbers |= {f"prior/{k}": v for k, v in learner["prior"].items()}
    numbers |= {f"average/{k}": v for k, v in learner.get("weight_average", {}).items()}
    numbers["averaged_updates"] = np.array(learner.get("averaged_updates", 0))
    for parameter, moments in optimizer["state"].items():
        numbers |= {f"optimizer/{parameter}/{k}": np.asarray(v) for k, v in moments.items()}
    acting = algorithm.env_runner.module.get_state()
    numbers |= {f"acting/{k}": v for k, v in acting.items()}
    numbers["iteration"] = np.array(algorithm.iteration)
    numbers["weights_version"] = np.array(algorithm.weights_version)
    numbers["acting_version"] = np.array(algorithm.env_runner._weights_seq_no)
    return numbers


@pytest.mark.slow
def test_a_fresh_process_goes_on_where_this_one_stopped(local_ray, make_config, tmp_path):
    config = make_config(kl_coeff=0.2, kl_decay=0.5)
    algorithm = config.build_algo()
    for _ in range(3):
        algorithm.train()
    saved = fingerprint(algorithm)
    checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.stop()

    restored_file, trained_file = tmp_path / "restored.npz", tmp_path / "trained.npz"
    files = (checkpoint, restored_file, trained_file)
    status, printed = run_python("-c", RESTORE_AND_TRAIN, *files, cwd=ROOT)
    assert status == 0, printed
    restored, trained = np.load(restored_file), np.load(trained_file)

    assert set(restored) == set(saved)
    for name, value in saved.items():
        np.testing.assert_array_equal(restored[name], value, err_msg=name)
    assert saved["weights_version"] == saved["acting_version"] == 3
    assert trained["iteration"] == 4
    assert trained["weights_version"] == 4
    assert trained["kl_coeff"] == pytest.approx(0.2 * 0.5**3)
    statistics = "weights/value_head.normalizer.running_mean"
    assert trained[statistics] != saved[statistics]


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"model": tiny_model(precision="bfloat16")}, marks=pytest.mark.slow),
        {"ema_decay": 0.9},
        pytest.param({"prior_update_interval": 1}, marks=pytest.mark.slow),
    ],
    ids=["plain", "bfloat16", "averaged", "prior that follows"],
)
def test_a_run_can_be_rolled_back(local_ray, make_config, tmp_path, options):
    algorithm = make_config(**options).build_algo()
    algorithm.train()
    saved = fingerprint(algorithm)
    checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.train()
    algorithm.restore_from_path(checkpoint)
    for name, value in fingerprint(algorithm).items():
        np.testing.assert_array_equal(value, saved[name], err_msg=name)
    assert len(algorithm.replay_buffer) == 0
    algorithm.stop()


def test_the_averaged_weights_of_a_checkpoint_can_be_loaded(local_ray, make_config, tmp_path):
    algorithm = make_config(ema_decay=0.9).build_algo()
    algorithm.train()
    learner = algorithm.learner_group.get_state()["learner"]
    checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.stop()
    assert learner["averaged_updates"] == 4, "2 epochs of 2 minibatches"

    name = "net.lastlayer.layer.weight"
    for folder in ("learner_group/learner/weight_average", "policy_average"):
        network = VPTNetwork(VPTConfig.from_options(tiny_model()))
        load_weights(network, checkpoints.open(Path(checkpoint) / folder))
        loaded = network.state_dict()[name].numpy()
        np.testing.assert_array_equal(loaded, learner["weight_average"][name])
        assert np.any(loaded != learner["rl_module"]["default_policy"][name])
    playing = checkpoints.open(Path(checkpoint) / "policy_average").playing
    assert playing == checkpoints.open(checkpoint).playing is not None
