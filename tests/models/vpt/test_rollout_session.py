"""A rollout session gives the network's numbers, with a memory that stays where it is."""

import dataclasses
import gc
import os
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.optim.optimizer import _global_optimizer_post_hooks

from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.acting import InferenceSession, _watches, sample
from rllib_minestudio.models.vpt.network import log_prob
from tests.models.value_statistics import take_in

TIME = 14
STATM = Path("/proc/self/statm")
"""The memory that a process holds, in pages."""


def _with(network, **changes):
    """The same weights under a changed configuration."""
    changed = VPTNetwork(dataclasses.replace(network.config, **changes))
    changed.load_state_dict(network.state_dict())
    return changed


def _assert_close(actual, expected, atol=5e-5):
    torch.testing.assert_close(actual, expected, rtol=5e-5, atol=atol)


def _assert_same_state(actual, expected):
    """Equal but for the oldest slot's contents, which nothing may attend to any more."""
    assert torch.equal(actual.mask[:, 1:], expected.mask[:, 1:])
    visible = expected.mask[:, None, 1:, None]
    for mine, theirs in ((actual.keys, expected.keys), (actual.values, expected.values)):
        _assert_close(mine[:, :, 1:] * visible, theirs[:, :, 1:] * visible)


def _assert_same_step(session, network, image, first, state, atol=5e-5):
    """Takes one step with both; returns the network's state after it."""
    with torch.no_grad():
        expected = network(image[:, None], first[:, None], state)
    decision = session.act(image, first)
    actions = {name: tokens[:, None] for name, tokens in decision.actions.items()}
    _assert_close(decision.log_prob_b, log_prob(expected.logits, actions)[:, 0], atol)
    value = network.value_head.denormalize(expected.value_bt[:, 0])
    _assert_close(decision.value_b, value, atol)
    return expected.state


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_steps_of_a_network_with_many_channels_equal_the_networks(
    tiny_options, precision, pretended
):
    torch.manual_seed(0)
    options = {**tiny_options, "impala_chans": [32, 32, 64], "impala_width": 1}
    options = {**options, "img_shape": [64, 80, 3], "precision": precision}
    network = VPTNetwork(VPTConfig.from_options(options))
    session, state = InferenceSession(network, 2), network.initial_state(2)
    for first in torch.tensor([[True, True], [False, True], [False, False]]):
        image = torch.randint(0, 256, (2, 64, 80, 3), dtype=torch.uint8)
        atol = 5e-5 if precision == "float32" else 0.1
        state = _assert_same_step(session, network, image, first, state, atol)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(first=st.lists(st.booleans(), min_size=2 * TIME, max_size=2 * TIME))
def test_steps_equal_the_networks(network, images, first):
    first = torch.tensor(first).view(2, TIME)
    take_in(network.value_head, torch.tensor([3.0, 5.0]))
    session, state = InferenceSession(network, 2), network.initial_state(2)
    for t in range(TIME):
        state = _assert_same_step(session, network, images[:, t], first[:, t], state)
        _assert_same_state(session.state(), state)


def test_greedy_actions_are_the_modes(network, images):
    first = torch.ones(2, dtype=torch.bool)
    with torch.no_grad():
        logits = network(images[:, :1], first[:, None], network.initial_state(2)).logits
    actions = InferenceSession(network, 2).act(images[:, 0], first, explore=False).actions
    for name, log_p in logits.items():
        assert torch.equal(actions[name], log_p[:, 0].argmax(-1, keepdim=True))


def test_those_who_wait_are_computed_along_and_leave_no_trace(network, images):
    none = torch.zeros(2, dtype=torch.bool)
    together, in_turns = InferenceSession(network, 2), InferenceSession(network, 2)
    for t in range(5):
        expected = together.act(images[:, t], none, explore=False)
        for row in (1, 0) if t % 2 else (0, 1):
            moving = torch.arange(2) == row
            shown = torch.where(moving[:, None, None, None], images[:, t], 255 - images[:, t])
            found = in_turns.act(shown, ~moving, moving_n=moving, explore=False)
            assert torch.equal(found.value_b[row], expected.value_b[row])
            assert torch.equal(found.log_prob_b[row], expected.log_prob_b[row])


def test_some_environments_may_step_while_others_wait(network, images):
    """Rows given in any order play as they would alone."""
    none = torch.zeros(2, dtype=torch.bool)
    session = InferenceSession(network, 2)
    alone = [InferenceSession(network, 1) for _ in range(2)]
    for t, rows in enumerate([[0], [1, 0], [1], [0, 1], [0], [0], [1, 0]]):
        decision = session.act(images[rows, t], none[rows], rows=torch.tensor(rows))
        for position, row in enumerate(rows):
            expected = alone[row].act(images[row : row + 1, t], none[:1], explore=False)
            _assert_close(decision.value_b[position], expected.value_b[0])
    states = [one.state() for one in alone]
    both = session.state()
    for row, state in enumerate(states):
        _assert_close(both.values[row], state.values[0])


def test_asking_for_a_value_changes_nothing(network, images):
    session, other = InferenceSession(network, 2), InferenceSession(network, 2)
    none = torch.zeros(2, dtype=torch.bool)
    for t in range(9):
        session.act(images[:, t], none)
        other.act(images[:, t], none)
        peeked = session.value(images[:, t + 1], ~none)
        one = session.value(images[1:, t + 1], ~none[1:], rows=torch.tensor([1]))
        _assert_close(one[0], peeked[1])
        _assert_same_state(session.state(), other.state())
    value = session.value(images[:, 9], none)
    _assert_close(value, session.act(images[:, 9], none).value_b)


def test_images_of_floats_are_refused(network, images):
    session = InferenceSession(network, 2)
    with pytest.raises(TypeError, match=r"must be bytes .* not torch.float32"):
        session.act(images[:, 0] / 255, torch.ones(2, dtype=torch.bool))


def test_nobody_may_act(network, images):
    session, nobody = InferenceSession(network, 2), torch.zeros(0, dtype=torch.int64)
    decision = session.act(images[:0, 0], torch.ones(0, dtype=torch.bool), rows=nobody)
    assert decision.value_b.shape == decision.log_prob_b.shape == (0,)


def test_a_saved_state_continues(network, images):
    none = torch.zeros(2, dtype=torch.bool)
    session = InferenceSession(network, 2)
    for t in range(8):
        session.act(images[:, t], none)
    resumed = InferenceSession(network, 2)
    resumed.load_state(session.state())
    for t in range(8, TIME):
        expected = session.act(images[:, t], none).value_b
        _assert_close(resumed.act(images[:, t], none).value_b, expected)


def _load(network, other):
    network.load_state_dict(other.state_dict())


def _load_by_assigning(network, other):
    network.load_state_dict(other.state_dict(), assign=True)


def _replace_a_parameter(network, other):
    network.net.lastlayer.layer.weight = other.net.lastlayer.layer.weight


def _replace_a_module(network, other):
    network.pi_head = other.pi_head


def _exchange_the_numbers_twice(network, other):
    """The second time they may come to lie where the first were."""
    for _ in range(2):
        for parameter in network.parameters():
            parameter.data = parameter.data * 0.9


def _step_with(make_optimizer):
    def step(network, other):
        optimizer = make_optimizer(network.parameters(), lr=0.1)
        for parameter in network.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()

    return step


CHANGES = {
    "loaded": _load,
    "loaded by assigning": _load_by_assigning,
    "a parameter replaced": _replace_a_parameter,
    "a module replaced": _replace_a_module,
    "numbers exchanged": _exchange_the_numbers_twice,
    "SGD": _step_with(torch.optim.SGD),
    "AdamW": _step_with(torch.optim.AdamW),
    "AdamW, for each": _step_with(partial(torch.optim.AdamW, foreach=True)),
    "AdamW, fused": _step_with(partial(torch.optim.AdamW, fused=True)),
    "SGD, fused": _step_with(partial(torch.optim.SGD, fused=True)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_new_weights_are_noticed(network, images, change):
    session = InferenceSession(network, 2)
    first = torch.ones(2, dtype=torch.bool)
    before = session.act(images[:, 0], first).logits["camera"]
    for _ in range(2):  # a change of what was changed before is noticed as well
        change(network, VPTNetwork(network.config))
        _assert_same_step(session, network, images[:, 0], first, network.initial_state(2))
    assert not torch.equal(session.act(images[:, 0], first).logits["camera"], before)


def test_weights_are_laid_out_once_as_long_as_they_stay(network, images, monkeypatch):
    session = InferenceSession(network, 2)
    monkeypatch.setattr(session, "_adopt_weights", lambda: pytest.fail("laid out again"))
    others = VPTNetwork(network.config)
    for t in range(3):
        _step_with(torch.optim.AdamW)(others, None)
        session.act(images[:, t], torch.ones(2, dtype=torch.bool))


def test_a_session_that_nobody_has_any_more_leaves_nothing(network):
    gc.collect()  # sessions of other tests
    before, hooks = len(_watches), len(_global_optimizer_post_hooks)
    session = InferenceSession(network, 2)
    assert len(_watches) == before + 1
    del session
    gc.collect()
    assert len(_watches) == before
    assert len(_global_optimizer_post_hooks) == hooks, "all sessions share one"


def test_bfloat16_is_close(network, images):
    reduced = _with(network, precision="bfloat16")
    session, none = InferenceSession(reduced, 2), torch.zeros(2, dtype=torch.bool)
    exact = InferenceSession(network, 2)
    for t in range(TIME):
        value = session.act(images[:, t], none).value_b
        expected = exact.act(images[:, t], none).value_b
        torch.testing.assert_close(value, expected, rtol=0.1, atol=0.15)
        assert value.dtype == torch.float32
    assert session.state().keys.dtype == torch.float32


def test_memory_stays_where_it_is(network, images):
    session, none = InferenceSession(network, 2), torch.zeros(2, dtype=torch.bool)
    before = [tensor.data_ptr() for tensor in session._memory._tensors()]
    for _ in range(3 * network.config.memory_length):
        session.act(images[:, 0], none)
    assert [tensor.data_ptr() for tensor in session._memory._tensors()] == before


@pytest.mark.slow
@pytest.mark.skipif(not STATM.exists(), reason="needs Linux")
def test_memory_is_constant_over_thousands_of_steps(network, images):
    session, none = InferenceSession(network, 2), torch.zeros(2, dtype=torch.bool)
    held = []
    for step in range(4_001):
        session.act(images[:, step % TIME], none)
        if step % 1_000 == 0:
            held.append(resident_kib())
    # A leak grows in every thousand steps; what else lives in this process grows in one of them.
    assert min(after - before for before, after in pairwise(held)) < 0.45 * 1_000


def resident_kib():
    """What this process holds by now, and not what it once held."""
    gc.collect()
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_steps_on_any_device_equal_the_networks(network, images, precision, device):
    """On a GPU steps are replays of a CUDA graph, which new weights must get into."""
    network, images = _with(network, precision=precision).to(device), images.to(device)
    session, state = InferenceSession(network, 2), network.initial_state(2)
    atol = 5e-5
    if precision == "bfloat16":
        atol = 0.3
        for head in network.pi_head.values():  # which are large, as are their errors then
            torch.nn.init.normal_(head.linear_layer.weight, std=0.1)
    for t in range(TIME):
        if t == TIME // 2:
            _load(network, VPTNetwork(network.config).to(device))
        first = torch.tensor([t == 5, t == 0], device=device)
        state = _assert_same_step(session, network, images[:, t], first, state, atol)


def test_sampling_frequencies():
    scores = torch.tensor([[0.5, 0.25, 0.25]]).log() + 7.0  # not normalised
    torch.manual_seed(0)
    actions, log_p = sample({"x": scores.expand(20_000, -1)})
    frequencies = torch.bincount(actions["x"][:, 0], minlength=3) / 20_000
    _assert_close(frequencies, torch.tensor([0.5, 0.25, 0.25]), atol=0.015)
    _assert_close(log_p, torch.tensor([0.5, 0.25, 0.25]).log()[actions["x"][:, 0]])
