"""The network's shapes, its memory, and that chunking changes nothing."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork, VPTState
from rllib_minestudio.models.vpt.attention import BASIS_SCALE, QUERY_SCALE, shift_into_band

TIME = 14


def _run_in_chunks(network, images, first, lengths):
    """Feeds the frames in chunks of the given lengths; returns outputs joined, and the state."""
    state, outputs, start = network.initial_state(len(images)), [], 0
    with torch.no_grad():
        for length in lengths:
            chunk = slice(start, start + length)
            output = network(images[:, chunk], first[:, chunk], state)
            outputs.append(output)
            state, start = output.state, start + length
    joined = {
        name: torch.cat([output.logits[name] for output in outputs], dim=1)
        for name in ("buttons", "camera")
    }
    joined["value"] = torch.cat([output.value_bt for output in outputs], dim=1)
    return joined, state


def _assert_equal(actual: dict, expected: dict):
    for name in expected:
        torch.testing.assert_close(actual[name], expected[name], rtol=1e-5, atol=2e-5)


def test_shapes_and_dtypes(network, images):
    first = torch.zeros(images.shape[:2], dtype=torch.bool)
    output = network(images, first, network.initial_state(2))
    assert output.logits["buttons"].shape == (2, TIME, 8641)
    assert output.logits["camera"].shape == (2, TIME, 121)
    assert output.value_bt.shape == (2, TIME)
    assert output.state.mask.shape == (2, 6)
    assert output.state.keys.shape == output.state.values.shape == (2, 2, 6, 16)
    assert output.state.mask.dtype == torch.bool
    for tensor in (*output.logits.values(), output.value_bt):
        assert tensor.dtype == torch.float32
    for log_p in output.logits.values():
        torch.testing.assert_close(log_p.logsumexp(-1), torch.zeros(2, TIME), rtol=0, atol=1e-5)


chunkings = st.lists(st.integers(1, 9), min_size=TIME, max_size=TIME).map(
    # As many of the lengths as fit into TIME frames, then one of the rest.
    lambda lengths: [
        min(length, TIME - sum(lengths[:i]))
        for i, length in enumerate(lengths)
        if sum(lengths[:i]) < TIME
    ]
)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(first=st.lists(st.booleans(), min_size=2 * TIME, max_size=2 * TIME), lengths=chunkings)
def test_any_chunking_equals_step_by_step(network, images, first, lengths):
    first = torch.tensor(first).view(2, TIME)
    stepped, stepped_state = _run_in_chunks(network, images, first, [1] * TIME)
    chunked, chunked_state = _run_in_chunks(network, images, first, lengths)
    _assert_equal(chunked, stepped)
    assert torch.equal(chunked_state.mask, stepped_state.mask)
    _assert_equal(chunked_state._asdict(), stepped_state._asdict())


def test_an_episode_start_forgets_everything_before_it(network, images):
    first = torch.zeros(2, TIME, dtype=torch.bool)
    first[0, 5] = True
    whole, _ = _run_in_chunks(network, images, first, [TIME])
    alone, _ = _run_in_chunks(network, images[:1, 5:], first[:1, 5:], [TIME - 5])
    for name in alone:
        torch.testing.assert_close(whole[name][:1, 5:], alone[name], rtol=1e-5, atol=2e-5)


def test_memory_holds_what_the_configuration_says(network, images):
    """With two layers of memory 6, the value sees 5 + 5 frames back, and not one more."""
    first = torch.zeros(2, TIME, dtype=torch.bool)
    reach = 2 * (network.config.memory_length - 1)
    before, _ = _run_in_chunks(network, images, first, [TIME])
    changed = images.clone()
    changed[:, 0] = 255 - changed[:, 0]
    after, _ = _run_in_chunks(network, changed, first, [TIME])
    difference = (before["value"] - after["value"]).abs().amax(0)
    assert difference[reach] > 0
    assert torch.all(difference[reach + 1 :] == 0)


def test_garbage_in_invisible_slots_does_not_matter(network, images):
    first = torch.zeros(2, 3, dtype=torch.bool)
    clean = network.initial_state(2)
    dirty = VPTState(clean.mask, torch.full_like(clean.keys, 1e3), torch.full_like(clean.keys, 1e3))
    expected = network(images[:, :3], first, clean).value_bt
    assert torch.equal(network(images[:, :3], first, dirty).value_bt, expected)


def test_environments_do_not_see_each_other(network, images):
    first = torch.zeros(2, TIME, dtype=torch.bool)
    both, _ = _run_in_chunks(network, images, first, [TIME])
    alone, _ = _run_in_chunks(network, images[1:], first[1:], [TIME])
    for name in alone:
        torch.testing.assert_close(both[name][1:], alone[name], rtol=1e-5, atol=2e-5)


def test_gradients_reach_every_parameter(network, images):
    first = torch.zeros(2, TIME, dtype=torch.bool)
    output = network(images, first, network.initial_state(2))
    loss = output.value_bt.sum()
    for log_p in output.logits.values():
        loss = loss + log_p[..., 0].sum()
    loss.backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize(("batch", "time"), [(0, 3), (2, 0), (0, 0)])
def test_no_frames_give_no_numbers(network, images, batch, time):
    state = network.initial_state(batch)
    first = torch.zeros(batch, time, dtype=torch.bool)
    output = network(images[:batch, :time], first, state)
    assert output.value_bt.shape == (batch, time)
    assert output.logits["buttons"].shape == (batch, time, 8641)
    assert all(map(torch.equal, output.state, state))
    output.value_bt.sum().backward()


def test_images_of_floats_are_refused(network, images):
    first = torch.zeros(2, TIME, dtype=torch.bool)
    with pytest.raises(TypeError, match=r"be bytes .* not torch.float32; .* converts them"):
        network(images / 255, first, network.initial_state(2))


@pytest.mark.parametrize(("time", "memory"), [(1, 4), (3, 3), (5, 2)])
def test_shift_into_band(time, memory):
    x = torch.arange(1.0, time * memory + 1).view(time, memory)
    expected = torch.zeros(time, memory + time)
    for t in range(time):
        expected[t, t + 1 : t + 1 + memory] = x[t]
    assert torch.equal(shift_into_band(x), expected)


def test_weights_begin_with_the_norms_that_openai_gives_them():
    torch.manual_seed(0)
    block = VPTNetwork(VPTConfig.from_options({"preset": "nano"})).net.recurrent_layer.blocks[0]
    attention = block.r.orc_block
    queries = attention.q_layer.weight.flatten(1).norm(dim=1)
    torch.testing.assert_close(queries, torch.full_like(queries, QUERY_SCALE))
    assert not attention.q_layer.bias.any()
    assert attention.b_nd.std().item() == pytest.approx(BASIS_SCALE, rel=0.1)
