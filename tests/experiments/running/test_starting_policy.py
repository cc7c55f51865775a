"""An experiment file can be evaluated as it is: its weights, without training."""

import numpy as np
import pytest
import yaml

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.policy_loading import evaluation_config
from rllib_minestudio.experiments.played_policy import load_starting_policy
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.weights import export_network

SIZES = {
    "img_shape": [64, 64, 3],
    "hidsize": 16,
    "attention_heads": 2,
    "n_recurrence_layers": 1,
    "attention_memory_size": 24,
    "timesteps": 16,
    "impala_width": 0.25,
}


def experiment(tmp_path, *names, **config):
    body = {
        "run": "MineStudioPPO",
        "env": "MineStudioEnv",
        "config": {"env_config": {"obs_size": [64, 64]}, **config},
    }
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(dict.fromkeys(names or ("task",), body)))
    return file


def test_the_weights_of_the_file_are_the_policys_and_decide_its_size(tmp_path):
    network = VPTNetwork(VPTConfig(**SIZES))
    export_network(network, tmp_path / "weights")
    file = experiment(tmp_path, model={"weights": str(tmp_path / "weights")})
    policy = load_starting_policy(file)
    expected = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    assert set(policy.weights) == set(expected)
    for name, tensor in expected.items():
        if not name.startswith("value_head"):  # which training starts from zero
            np.testing.assert_array_equal(policy.weights[name], tensor)
    assert policy.identity["checkpoint"] == str(file)
    # Evaluating does not look at the file again, and still knows the sizes.
    config = evaluation_config(policy.config, num_env_runners=0)
    assert config.model_config["weights"] is None
    assert config.model_config["hidsize"] == 16


@pytest.mark.parametrize(
    ("names", "config"),
    [(("a", "b"), {}), (("a",), {"lr": {"grid_search": [1e-4, 1e-5]}})],
)
def test_several_experiments_or_a_search_are_refused(tmp_path, names, config):
    file = experiment(tmp_path, *names, model={"preset": "nano", **SIZES}, **config)
    with pytest.raises(InvalidOptionsError, match="one experiment without searches"):
        load_starting_policy(file)
