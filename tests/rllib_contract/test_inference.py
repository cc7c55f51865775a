"""RLlib's recipe for inference with a recurrent module, with tensors and with NumPy arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule, RLModuleSpec
from ray.rllib.utils.numpy import convert_to_numpy

from rllib_minestudio.errors import InvalidBatchError, InvalidOptionsError
from rllib_minestudio.models.rl_modules import VPTRLModule, spaces_of
from tests.algorithms.toy_envs import AttackOnRed, tiny_model


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """As RLlib's recipe gets it: from a checkpoint of the module alone."""
    torch.manual_seed(0)
    env = AttackOnRed()
    built = RLModuleSpec(
        module_class=VPTRLModule,
        observation_space=env.observation_space,
        action_space=env.action_space,
        model_config=tiny_model(),
    ).build()
    return RLModule.from_checkpoint(built.save_to_path(tmp_path_factory.mktemp("module")))


def play(module, convert, steps=6):
    """RLlib's loop; `convert` is what becomes of states on the way back in."""
    env = AttackOnRed({"delay": 3})
    obs, _ = env.reset(seed=1)
    state = {name: part[None] for name, part in module.get_initial_state().items()}
    tokens = []
    for _ in range(steps):
        image = convert(torch.from_numpy(obs["image"])[None, None])
        batch = {Columns.OBS: {"image": image}, Columns.STATE_IN: convert(state)}
        out = module.forward_inference(batch)
        state = out[Columns.STATE_OUT]
        action = {name: t[0, 0].numpy() for name, t in out[Columns.ACTIONS].items()}
        obs, *_ = env.step(action)
        tokens.append((int(action["buttons"][0]), int(action["camera"][0])))
    return tokens, out[Columns.VF_PREDS]


def test_tensors_and_arrays_play_alike(module):
    tokens, value = play(module, lambda part: part)
    same_tokens, same_value = play(module, convert_to_numpy)
    assert tokens == same_tokens and len(set(tokens)) > 1
    assert torch.equal(value, same_value)


def test_an_array_that_cannot_be_written_will_do(module):
    image = np.zeros((1, 1, 16, 16, 3), np.uint8)
    image.flags.writeable = False
    assert module.forward_inference({Columns.OBS: {"image": image}})[Columns.ACTIONS]


@pytest.mark.parametrize("forward", ["forward_inference", "forward_exploration", "forward_train"])
def test_without_a_state_episodes_begin(module, forward):
    image = torch.randint(0, 255, (2, 3, 16, 16, 3), dtype=torch.uint8)
    empty = module.network.initial_state(2)._asdict()
    outs = []
    for state in ({}, {Columns.STATE_IN: empty}):
        torch.manual_seed(3)
        outs.append(getattr(module, forward)({Columns.OBS: {"image": image}, **state}))
    assert torch.equal(outs[0][Columns.VF_PREDS], outs[1][Columns.VF_PREDS])


IMAGE = torch.zeros(1, 1, 16, 16, 3, dtype=torch.uint8)


@pytest.mark.parametrize(
    "change, said",
    [
        ({Columns.OBS: IMAGE}, "must be a dict with 'image'"),
        ({Columns.OBS: {"frame": IMAGE}}, r"is \['frame'\]"),
        ({Columns.OBS: {"image": IMAGE[0]}}, "lacks a time axis"),
        ({Columns.OBS: {"image": IMAGE[0, 0]}}, r"image\[None, None\]"),
        ({Columns.OBS: {"image": IMAGE.float()}}, r"float32 \(1, 1, 16, 16, 3\)"),
        ({Columns.OBS: {"image": IMAGE.bfloat16()}}, r"bfloat16 \(1, 1, 16, 16, 3\)"),
        ({Columns.OBS: {"image": [[0]]}}, "a list: it must be a tensor or a NumPy array"),
        ({"first": torch.zeros(1, 2)}, "must have the image's batch and time axes"),
        ({Columns.STATE_IN: {"keys": IMAGE}}, "pass what came back as 'state_out'"),
        ({Columns.STATE_IN: "unbatched"}, "lacks the batch axis"),
    ],
)
def test_a_batch_that_does_not_fit_says_what_to_pass(module, change, said):
    if change.get(Columns.STATE_IN) == "unbatched":
        change = {Columns.STATE_IN: module.get_initial_state()}
    with pytest.raises(InvalidBatchError, match=said):
        module.forward_inference({Columns.OBS: {"image": IMAGE}, **change})


def test_under_rllibs_own_ppo_it_says_where_it_belongs(module):
    spaces = spaces_of(module.network.config)
    config = PPOConfig().rl_module(
        rl_module_spec=RLModuleSpec(module_class=VPTRLModule, model_config=tiny_model())
    )
    config.environment(AttackOnRed, **spaces)
    spec = config.get_rl_module_spec()
    with pytest.raises(InvalidOptionsError, match=r"vf_share_layers.*MineStudioPPO"):
        spec.build()
