"""Which frozen policy `kl_to` means, and what is said where there is none."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.errors import (
    CheckpointMismatchError,
    InvalidOptionsError,
    UntrustedError,
)
from rllib_minestudio.evaluation.env_runner import LEARNER_STATE, ReferencePolicy, load_prior
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.models.rl_modules import VPTRLModule, spaces_of
from rllib_minestudio.models.vpt import VPTConfig
from rllib_minestudio.models.vpt.network import kl_divergence
from tests.algorithms.toy_envs import IMAGE_SIZE, tiny_model


def module(seed):
    torch.manual_seed(seed)
    spaces = spaces_of(VPTConfig.from_options(tiny_model()))
    return VPTRLModule(model_config=tiny_model(), **spaces)


def network(seed):
    return module(seed).network


def arrays(of):
    return {name: tensor.numpy() for name, tensor in of.state_dict().items()}


@pytest.fixture
def files(tmp_path):
    for seed, name in enumerate(("initial.pt", "named.pt")):
        torch.save(network(seed).state_dict(), tmp_path / name)
    return tmp_path


def test_the_prior_is_found_wherever_training_had_it_from(make_config, files):
    config = make_config()
    for options, kl_to, seed in (
        ({"prior": "initial", "model": {"weights": str(files / "initial.pt")}}, "prior", 0),
        ({"prior": str(files / "named.pt")}, "prior", 1),
        ({"prior": None}, str(files / "named.pt"), 1),
    ):
        config.training(**options)
        found = load_prior(config, None, kl_to)
        head = "pi_head.camera.linear_layer.weight"
        np.testing.assert_array_equal(found[head], arrays(network(seed))[head])


def test_a_prior_of_any_precision_is_read_and_a_damaged_one_refused(make_config, tmp_path):
    half = {name: tensor.bfloat16() for name, tensor in network(0).state_dict().items()}
    torch.save(half, tmp_path / "half.pt")
    found = load_prior(make_config(), None, str(tmp_path / "half.pt"))
    for name, tensor in half.items():
        np.testing.assert_array_equal(found[name], tensor.float().numpy(), err_msg=name)
    half["net.final_ln.weight"][0] = np.nan
    torch.save(half, tmp_path / "damaged.pt")
    with pytest.raises(CheckpointMismatchError, match=r"damaged.pt' are damaged"):
        load_prior(make_config(), None, str(tmp_path / "damaged.pt"))


def test_a_prior_that_no_file_holds_is_in_the_checkpoint(make_config, tmp_path):
    config = make_config().training(prior="initial")
    with pytest.raises(InvalidOptionsError, match="only the checkpoints of this run hold its"):
        load_prior(config, None, "prior")
    facts = {"form": "", "weights": tmp_path, "name": "x", "path": tmp_path, "verified": True}
    own = Checkpoint(**facts, trusted=True)
    with pytest.raises(CheckpointMismatchError, match="does not hold its prior"):
        load_prior(config, own, "prior")
    state = tmp_path / LEARNER_STATE
    state.parent.mkdir(parents=True)
    state.write_bytes(pickle.dumps({"prior": {"weight": 1}}))
    assert load_prior(config, own, "prior") == {"weight": 1}
    with pytest.raises(UntrustedError, match=r"state\.pkl \(a pickle, which can run"):
        load_prior(config, Checkpoint(**facts), "prior")


def test_what_there_is_no_prior_for_is_refused_with_a_way_out(make_config, files):
    config = make_config().training(prior=None)
    with pytest.raises(InvalidOptionsError, match="was trained without one"):
        load_prior(config, None, "prior")
    with pytest.raises(InvalidOptionsError, match=r"kl_to: .*nowhere"):
        load_prior(config, None, "nowhere")
    config.training(model={"hidsize": 48})
    with pytest.raises(InvalidOptionsError, match="instead of"):
        load_prior(config, None, str(files / "named.pt"))
    with pytest.raises(InvalidOptionsError, match=r"kl_to.*needs `record`"):
        EvaluationOptions.from_mapping({"kl_to": "prior"})


def test_the_divergence_is_that_of_the_networks_with_their_memories():
    ours, prior = module(0), module(1)
    session, reference = ours.make_rollout_session(2), ReferencePolicy(ours, prior.get_state(), 2)
    networks = [ours.network, prior.network]
    states = [net.initial_state(2) for net in networks]
    generator = torch.Generator().manual_seed(0)
    for t in range(5):
        shape = (2, IMAGE_SIZE, IMAGE_SIZE, 3)
        image = torch.randint(256, shape, dtype=torch.uint8, generator=generator)
        first = torch.tensor([t == 0, t in (0, 3)])
        obs = {"image": image}
        decision = session.act(obs, first)
        found = reference.divergence(obs, first, decision.distribution)
        logits = []
        for i, net in enumerate(networks):
            with torch.no_grad():
                output = net(image[:, None], first[:, None], states[i])
            states[i] = output.state
            logits.append({name: scores[:, 0] for name, scores in output.logits.items()})
        torch.testing.assert_close(found, kl_divergence(*logits), rtol=1e-3, atol=1e-5)
        assert (found > 0).all()
