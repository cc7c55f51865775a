"""VPTRLModule inside RLlib: building, forward passes, state and weights."""

import shutil

import gymnasium as gym
import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rllib_minestudio import checkpoints
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.models.policy import FIRST
from rllib_minestudio.models.rl_modules import LOGITS, VALUE, VPTRLModule
from rllib_minestudio.models.vpt.weights import (
    config_from_checkpoint,
    export_network,
    weights_problems,
)
from tests.models.value_statistics import take_in

ACTION_SPACE = gym.spaces.Dict(
    buttons=gym.spaces.MultiDiscrete([8641]), camera=gym.spaces.MultiDiscrete([121])
)


def _observation_space(height=16, width=24):
    return gym.spaces.Dict(image=gym.spaces.Box(0, 255, (height, width, 3), np.uint8))


@pytest.fixture
def build(tiny_options):
    def build(inference_only=False, observation_space=None, action_space=ACTION_SPACE, **options):
        return RLModuleSpec(
            module_class=VPTRLModule,
            observation_space=observation_space or _observation_space(),
            action_space=action_space,
            inference_only=inference_only,
            model_config={**tiny_options, **options},
        ).build()

    return build


def _batch(module, images, first=None):
    state = {
        name: tensor.unsqueeze(0).repeat_interleave(len(images), 0)
        for name, tensor in module.get_initial_state().items()
    }
    batch = {Columns.OBS: {"image": images}, Columns.STATE_IN: state}
    return batch if first is None else {**batch, FIRST: first}


def test_exploration_returns_what_an_env_runner_stores(build, images):
    module = build()
    out = module.forward_exploration(_batch(module, images))
    for head in ("buttons", "camera"):
        assert out[Columns.ACTIONS][head].shape == (2, 14, 1)
        assert out[Columns.ACTIONS][head].dtype == torch.int64
    assert out[Columns.ACTION_LOGP].shape == out[Columns.VF_PREDS].shape == (2, 14)
    assert ACTION_SPACE.contains(
        {head: tokens[0, 0].numpy() for head, tokens in out[Columns.ACTIONS].items()}
    )
    initial = module.get_initial_state()
    for name, tensor in out[Columns.STATE_OUT].items():
        assert tensor.shape[1:] == initial[name].shape
        assert not tensor.requires_grad


def test_inference_is_deterministic_and_most_probable(build, images):
    module = build()
    batch = _batch(module, images)
    first, second = (module.forward_inference(batch) for _ in range(2))
    logits = module.forward_train(batch)[LOGITS]
    for head, tokens in first[Columns.ACTIONS].items():
        assert torch.equal(tokens, second[Columns.ACTIONS][head])
        assert torch.equal(tokens, logits[head].argmax(-1, keepdim=True))


def test_train_pass_agrees_with_the_rollout(build, images):
    module = build()
    first = torch.rand(2, 14, generator=torch.Generator().manual_seed(0)) < 0.3
    take_in(module.network.value_head, torch.tensor([3.0, 9.0]))
    batch = _batch(module, images, first)
    rollout = module.forward_exploration(batch)
    train = module.forward_train(batch)
    actions = rollout[Columns.ACTIONS]
    log_p = sum(train[LOGITS][head].gather(-1, actions[head])[..., 0] for head in actions)
    torch.testing.assert_close(log_p, rollout[Columns.ACTION_LOGP])
    torch.testing.assert_close(train[Columns.VF_PREDS], rollout[Columns.VF_PREDS])
    torch.testing.assert_close(
        train[Columns.VF_PREDS], module.network.value_head.denormalize(train[VALUE])
    )
    torch.testing.assert_close(module.compute_values(batch), train[Columns.VF_PREDS])
    assert train[VALUE].requires_grad


def test_without_first_no_frame_begins_an_episode(build, images):
    module = build()
    none = torch.zeros(2, 14, dtype=torch.bool)
    without = module.forward_train(_batch(module, images))
    explicit = module.forward_train(_batch(module, images, none))
    assert torch.equal(without[VALUE], explicit[VALUE])


def test_initial_state_has_no_batch_axis_and_makes_the_module_stateful(build):
    module = build()
    state = module.get_initial_state()
    assert state["mask"].shape == (6,) and state["mask"].dtype == torch.bool
    assert state["keys"].shape == state["values"].shape == (2, 6, 16)
    assert module.is_stateful()


def _perturb(module):
    """Changes every weight, and gives the value statistics something to remember."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter))
    take_in(module.network.value_head, torch.tensor([1.0, 17.0]))


def _assert_same_weights(a, b):
    state_a, state_b = a.network.state_dict(), b.network.state_dict()
    assert state_a.keys() == state_b.keys()
    for name in state_a:
        assert state_a[name].dtype == state_b[name].dtype
        assert torch.equal(state_a[name], state_b[name]), name


def test_get_state_and_set_state_carry_everything(build):
    source, target = build(), build()
    _perturb(source)
    state = source.get_state()
    assert all(isinstance(array, np.ndarray) for array in state.values())
    assert state["value_head.normalizer.debiasing_term"].shape == ()
    target.set_state(state)
    _assert_same_weights(source, target)


def test_a_state_taken_does_not_change_with_the_module(build):
    module = build()
    state = module.get_state()
    before = {name: array.copy() for name, array in state.items()}
    _perturb(module)
    for name, array in state.items():
        np.testing.assert_array_equal(array, before[name])


def test_save_and_restore_through_rllib(build, tmp_path):
    source, target = build(), build()
    _perturb(source)
    source.save_to_path(tmp_path / "module")
    target.restore_from_path(tmp_path / "module")
    _assert_same_weights(source, target)
    rebuilt = VPTRLModule.from_checkpoint(tmp_path / "module")
    _assert_same_weights(source, rebuilt)


def test_works_inside_a_multi_rl_module(build, tiny_options):
    spec = RLModuleSpec(
        module_class=VPTRLModule,
        observation_space=_observation_space(),
        action_space=ACTION_SPACE,
        model_config=tiny_options,
    )
    source, target = (
        MultiRLModuleSpec(rl_module_specs={"default_policy": spec}).build() for _ in range(2)
    )
    _perturb(source["default_policy"])
    target.set_state(source.get_state())
    _assert_same_weights(source["default_policy"], target["default_policy"])


def test_an_inference_only_module_takes_a_learners_weights(build, images):
    learner, runner = build(), build(inference_only=True)
    _perturb(learner)
    runner.set_state(learner.get_state(inference_only=True))
    _assert_same_weights(learner, runner)
    out = runner.forward_exploration(_batch(runner, images))
    assert out[Columns.VF_PREDS].shape == (2, 14)


def test_weights_are_loaded_from_a_file(build, tmp_path):
    source = build()
    _perturb(source)
    torch.save(source.network.state_dict(), tmp_path / "weights.pt")
    _assert_same_weights(source, build(weights=str(tmp_path / "weights.pt")))


def test_zero_init_value_head_applies_after_loading(build, tmp_path, images):
    source = build()
    _perturb(source)
    torch.save(source.network.state_dict(), tmp_path / "weights.pt")
    module = build(weights=str(tmp_path / "weights.pt"), zero_init_value_head=True)
    out = module.forward_exploration(_batch(module, images))
    assert torch.equal(out[Columns.VF_PREDS], torch.zeros(2, 14))
    assert torch.equal(module.network.net.final_ln.weight, source.network.net.final_ln.weight)


def test_weights_of_another_size_are_refused(build, tmp_path):
    torch.save(build(hidsize=32).network.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(InvalidOptionsError, match=r"hidsize is 16, but .* have 32"):
        build(weights=str(tmp_path / "weights.pt"))


def test_loading_weights_of_another_size_lists_what_differs(build, tmp_path):
    torch.save(build(hidsize=32).network.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(CheckpointMismatchError) as caught:
        build().load_weights(str(tmp_path / "weights.pt"))
    message = str(caught.value)
    assert "weights.pt' belong to another network" in message
    assert "net.img_process.linear.layer.weight: (32, 256) instead of (16, 256)" in message
    assert "missing" not in message


def test_missing_and_unexpected_weights_are_listed_and_nothing_is_loaded(build):
    module = build()
    before = module.get_state()
    state = {name: array + 1 for name, array in before.items()}
    state["extra"] = state.pop("value_head.linear.bias")
    with pytest.raises(CheckpointMismatchError) as caught:
        module.set_state(state)
    assert "1 missing:\n    value_head.linear.bias" in str(caught.value)
    assert "1 unexpected:\n    extra" in str(caught.value)
    for name, array in module.get_state().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "do not exist: .* has no .weights.pt., and holds nothing. Give a checkpoint, "),
        (b"not a checkpoint", "cannot be read as a torch state dict"),
        (b"", "cannot be read as a torch state dict"),
        ([1, 2], "hold a list, not a state dict"),
    ],
)
def test_unusable_weights_files_are_refused(build, tmp_path, content, message):
    path = tmp_path / "weights.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(CheckpointMismatchError, match=message):
        build(weights=str(path))


def test_images_of_another_size_are_refused_with_a_way_out(build):
    with pytest.raises(InvalidOptionsError) as caught:
        build(observation_space=_observation_space(128, 160))
    message = str(caught.value)
    assert "images are (128, 160, 3)" in message and "reads (16, 24, 3)" in message
    assert "obs_size to [24, 16]" in message and "img_shape to [128, 160, 3]" in message


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Box(0, 255, (16, 24, 3), np.uint8),
        gym.spaces.Dict(pixels=gym.spaces.Box(0, 255, (16, 24, 3), np.uint8)),
        gym.spaces.Dict(image=gym.spaces.Box(0, 1, (16, 24, 3), np.float32)),
    ],
)
def test_observations_that_are_no_images_are_refused(build, space):
    with pytest.raises(InvalidOptionsError, match="The model reads Dict"):
        build(observation_space=space)


def test_other_actions_are_refused(build):
    with pytest.raises(InvalidOptionsError, match='action_type to "agent"'):
        build(action_space=gym.spaces.Discrete(4))


def test_mistyped_module_options_are_refused(build):
    with pytest.raises(InvalidOptionsError, match="Did you mean 'weights'"):
        build(weigths="a.pt")


def _inputs(module, images):
    first = torch.zeros(images.shape[:2], dtype=torch.bool)
    return images, first, module.network.initial_state(len(images))


def test_weights_decide_the_size(tiny_options, build, images, tmp_path):
    source = build(action_head="joint", temperature=2.0)
    export_network(source.network, tmp_path / "exported")
    module = VPTRLModule(
        observation_space=_observation_space(),
        action_space=ACTION_SPACE,
        model_config={"weights": str(tmp_path / "exported")},
    )
    assert module.network.config == source.network.config
    expected = source.network(*_inputs(source, images)).value_bt
    assert torch.equal(module.network(*_inputs(module, images)).value_bt, expected)


def test_a_checkpoint_of_the_module_loads_as_weights(build, images, tmp_path):
    """And restoring it does not need the weights that it once started from."""
    first = build()
    first.save_to_path(tmp_path / "first")
    module = build(weights=str(tmp_path / "first"))
    module.save_to_path(tmp_path / "second")
    shutil.rmtree(tmp_path / "first")
    restored = VPTRLModule.from_checkpoint(tmp_path / "second")
    expected = module.network(*_inputs(module, images)).value_bt
    assert torch.equal(restored.network(*_inputs(restored, images)).value_bt, expected)
    second = checkpoints.open(tmp_path / "second")
    assert config_from_checkpoint(second) == module.network.config
    assert weights_problems(module.network.config, second) == []


@pytest.mark.parametrize("before", ["float32", "bfloat16"])
@pytest.mark.parametrize("after", ["float32", "bfloat16"])
def test_precision_survives_or_changes_with_a_restored_state(build, images, before, after):
    module, restored = build(precision=before), build(precision=after)
    state = module.get_state()
    assert all(array.dtype == np.float32 for array in state.values())
    restored.set_state(state)
    for name, tensor in module.network.state_dict().items():
        assert torch.equal(restored.network.state_dict()[name], tensor)
    value = restored.network(*_inputs(restored, images)).value_bt
    expected = module.network(*_inputs(module, images)).value_bt
    tolerance = 0.0 if before == after else 0.3
    torch.testing.assert_close(value, expected, rtol=tolerance, atol=tolerance)
    assert value.dtype == torch.float32


def test_training_in_bfloat16(build, images):
    module = build(precision="bfloat16")
    out = module.forward_train(_batch(module, images))
    (out[VALUE].sum() + out[LOGITS]["buttons"][..., 3].sum()).backward()
    for name, parameter in module.network.named_parameters():
        if not name.startswith("pi_head.camera"):
            assert parameter.grad.dtype == torch.float32 and parameter.grad.isfinite().all(), name
    assert out[Columns.STATE_OUT]["keys"].dtype == torch.float32


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_compiled_network_gives_the_same_numbers_under_the_same_names(build, images):
    module, compiled = build(), build(compile=True)
    compiled.set_state(module.get_state())
    value = compiled.network(*_inputs(compiled, images)).value_bt
    expected = module.network(*_inputs(module, images)).value_bt
    torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-4)
    none = torch.zeros(2, dtype=torch.bool)
    sessions = [m.make_rollout_session(2) for m in (module, compiled)]
    values = [session.act({"image": images[:, 0]}, none).value_b for session in sessions]
    torch.testing.assert_close(*values, rtol=1e-4, atol=1e-4)


def test_frozen_parts_stay_frozen_after_restoring(build, tmp_path):
    module = build(freeze=["net.img_process.*"])
    module.save_to_path(tmp_path)
    for each in (module, VPTRLModule.from_checkpoint(tmp_path)):
        for name, parameter in each.network.named_parameters():
            assert parameter.requires_grad != name.startswith("net.img_process."), name


def test_patterns_that_pick_nothing_are_refused(build):
    with pytest.raises(InvalidOptionsError, match="picks no parameter"):
        build(freeze=["net.image.*"])
