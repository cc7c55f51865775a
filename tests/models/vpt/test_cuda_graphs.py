"""Training passes that a GPU replays give what the network computes, or are computed by it."""

import copy
import pickle

import pytest
import torch

from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork, VPTState, cuda_graphs

ENVS, FRAMES = 2, 6

gpu = pytest.mark.gpu


def _network(precision="float32", device="cuda"):
    torch.manual_seed(0)
    options = {"preset": "nano", "precision": precision}
    return VPTNetwork(VPTConfig.from_options(options)).to(device)


def _batch(network, seed, frames=FRAMES, envs=ENVS):
    generator = torch.Generator().manual_seed(seed)
    shape = (envs, frames, *network.config.img_shape)
    image = torch.randint(0, 256, shape, generator=generator).to(torch.uint8)
    first = torch.randint(0, 4, shape[:2], generator=generator) == 0
    device = network.net.final_ln.weight.device
    return image.to(device), first.to(device)


def _pass(network, seed=0, state=None, **sizes):
    """Loss (not yet taken back) and state."""
    image, first = _batch(network, seed, **sizes)
    state = network.initial_state(len(image)) if state is None else state
    latent, state = network.net(image, first, state)
    weights = torch.linspace(-1, 1, latent.shape[-1], device=latent.device)
    return (latent.square() * weights).mean(), state


def _gradients(network):
    return [parameter.grad for parameter in network.net.parameters()]


def _replays(network):
    recorded = network.net._graph._recorded
    return 0 if recorded is None else recorded.replays


@pytest.fixture
def recorded():
    """A network whose passes are replayed, and one with the same weights whose never are."""
    mine, other = _network(), _network()
    other.net._graph = None
    for _ in range(cuda_graphs.PATIENCE + 1):
        _pass(mine)[0].backward()
    mine.zero_grad(set_to_none=True)
    assert _replays(mine) == 1
    return mine, other


@pytest.fixture(autouse=True)
def _full_precision(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def _assert_same(mine, other, bound=1e-4):
    """Up to rounding: cuDNN may choose other algorithms. What is missing is zero."""
    for found, expected in zip(mine, other, strict=True):
        expected = torch.zeros_like(found) if expected is None else expected
        assert (found - expected).norm() <= bound * expected.norm()


@gpu
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_replays_follow_inputs_states_and_weights(precision):
    mine, other = _network(precision), _network(precision)
    other.net._graph = None
    state = None
    for step in range(8):
        loss, after = _pass(mine, step, state)
        loss.backward()
        loss, expected = _pass(other, step, state)
        loss.backward()
        _assert_same(_gradients(mine), _gradients(other), 1e-4 if precision == "float32" else 0.1)
        _assert_same(after[1:], expected[1:], 1e-4 if precision == "float32" else 0.1)
        assert torch.equal(after.mask, expected.mask)
        state = VPTState(*(tensor.detach() for tensor in after))
        with torch.no_grad():  # as an optimizer changes weights
            for parameter in mine.net.parameters():
                parameter.sub_(0.1 * parameter.grad)
        other.load_state_dict(mine.state_dict())  # no rounding adds up
        mine.zero_grad(set_to_none=True)
        other.zero_grad(set_to_none=True)
    assert _replays(mine) == 8 - cuda_graphs.PATIENCE


@gpu
def test_outputs_that_are_kept_hinder_no_capture():
    network = _network()
    kept = []
    for step in range(cuda_graphs.PATIENCE + 2):
        kept.append(_pass(network, step))
        kept[-1][0].backward()
    assert _replays(network) == 2


@gpu
def test_gradients_of_several_replays_add_up(recorded):
    for network in recorded:
        for seed in (1, 2, 3):
            _pass(network, seed)[0].backward()
    _assert_same(*map(_gradients, recorded))
    assert _replays(recorded[0]) == 4


@gpu
def test_two_passes_before_their_gradients_are_both_right(recorded):
    for network in recorded:
        (_pass(network, 1)[0] + 2 * _pass(network, 2)[0]).backward()
    _assert_same(*map(_gradients, recorded))
    assert _replays(recorded[0]) == 2, "the second was computed"


@gpu
def test_gradients_go_through_the_memory_from_chunk_to_chunk(recorded):
    for network in recorded:
        first, state = _pass(network, 1)
        second, _ = _pass(network, 2, state)
        (first + second).backward()
    _assert_same(*map(_gradients, recorded))
    for network in recorded:
        network.zero_grad(set_to_none=True)
        _, state = _pass(network, 1)
        (state.keys[:, -1].sum() + state.values.square().mean()).backward()
    _assert_same(*map(_gradients, recorded))


@gpu
def test_outputs_of_a_replay_outlive_the_next(recorded):
    mine, _ = recorded
    with_first, first = _pass(mine, 1)
    kept, kept_loss = first.keys.detach().clone(), with_first.item()
    with_first.backward()
    _pass(mine, 2)[0].backward()
    assert torch.equal(first.keys.detach(), kept)
    assert with_first.item() == kept_loss


@gpu
def test_gradients_that_come_too_late_are_refused(recorded):
    mine, _ = recorded
    loss, _ = _pass(mine, 1)
    loss.backward(retain_graph=True)
    _pass(mine, 2)[0].backward()
    with pytest.raises(RuntimeError, match="a second time on a training pass"):
        loss.backward()


@gpu
def test_weights_that_change_before_the_gradients_are_refused(recorded):
    mine, _ = recorded
    loss, _ = _pass(mine, 1)
    with torch.no_grad():
        mine.net.final_ln.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@gpu
def test_a_pass_whose_outputs_are_dropped_holds_up_nothing(recorded):
    mine, _ = recorded
    for seed in range(3):
        _pass(mine, seed)
    assert _replays(mine) == 4


@gpu
def test_other_passes_are_computed(recorded):
    mine, other = recorded
    with torch.no_grad():
        assert not _pass(mine)[0].requires_grad
    for network in recorded:
        _pass(network, frames=FRAMES + 1)[0].backward()
    _assert_same(_gradients(mine), _gradients(other))
    seen = []
    handle = mine.net.lastlayer.register_forward_hook(lambda *_: seen.append(1))
    _pass(mine)
    handle.remove()
    assert seen
    assert _replays(mine) == 1


@gpu
def test_parameters_that_are_replaced_frozen_or_moved_are_noticed(recorded):
    for network in recorded:
        layer = network.net.lastlayer.layer
        layer.weight = torch.nn.Parameter(layer.weight.detach() * 0.5)
        network.net.final_ln.weight.data = network.net.final_ln.weight.data * 3
        network.net.final_ln.bias.requires_grad_(False)
        _pass(network)[0].backward()
    _assert_same(
        [g for g in _gradients(recorded[0]) if g is not None],
        [g for g in _gradients(recorded[1]) if g is not None],
    )
    assert recorded[0].net.final_ln.bias.grad is None


@gpu
def test_a_new_shape_that_stays_is_recorded_anew(recorded):
    for network in recorded:
        for seed in range(cuda_graphs.PATIENCE + 2):
            _pass(network, seed, envs=3)[0].backward()
    _assert_same(*map(_gradients, recorded))
    assert _replays(recorded[0]) == 2


@gpu
def test_too_little_memory_is_said_once_and_training_goes_on(recorded, monkeypatch, caplog):
    def refuse(*_args, **_kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")

    monkeypatch.setattr(cuda_graphs, "_RecordedPass", refuse)
    for network in recorded:
        for seed in range(cuda_graphs.PATIENCE + 3):
            _pass(network, seed, envs=3)[0].backward()
    _assert_same(*map(_gradients, recorded))
    assert len([r for r in caplog.records if "capturing a CUDA graph failed" in r.message]) == 1


@gpu
def test_copies_record_their_own(recorded):
    mine, other = recorded
    copied = copy.deepcopy(mine)
    _pass(copied)[0].backward()
    assert _replays(copied) == 0
    _pass(other)[0].backward()
    _assert_same(_gradients(copied), _gradients(other))


@gpu
def test_several_learners_compute(recorded, monkeypatch):
    mine, other = recorded
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    for network in recorded:
        _pass(network, 1)[0].backward()
    _assert_same(_gradients(mine), _gradients(other))
    assert _replays(mine) == 1


def test_a_network_can_be_copied_and_pickled():
    network = _network(device="cpu")
    for copied in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert copied.net._graph is not network.net._graph
        with torch.no_grad():
            assert torch.equal(_pass(copied)[0], _pass(network)[0])
