"""The network's memory: chunks and single steps agree, and it is PyTorch's GRU cell."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.observations import ObservationPart
from rllib_minestudio.models.conv_gru import (
    MEMORY,
    ChoicesEncoder,
    ConvGRUConfig,
    ConvGRUNetwork,
    FrameEncoder,
    NumbersEncoder,
    Values,
    is_frame,
)
from rllib_minestudio.models.rl_modules import heads_for

BATCH, STEPS, SIZE = 3, 7, 16
BEGINS = ((0, 0), (1, 3), (2, 3), (2, 6), (0, 5))
"""(row, step) at which an episode begins."""


@pytest.fixture
def network():
    torch.manual_seed(0)
    parts = {"speed": ObservationPart((4,), np.dtype(np.float32))}
    heads = heads_for(gym.spaces.Dict(way=gym.spaces.Discrete(3)), SIZE)
    return ConvGRUNetwork(ConvGRUConfig(hidden_size=SIZE), parts, heads)


@pytest.fixture
def chunk():
    generator = torch.Generator().manual_seed(1)
    obs = {"speed": torch.randn(BATCH, STEPS, 4, generator=generator)}
    first = torch.zeros(BATCH, STEPS, dtype=torch.bool)
    for row, step in BEGINS:
        first[row, step] = True
    return obs, first, {MEMORY: torch.randn(BATCH, SIZE, generator=generator)}


def test_a_chunk_is_its_steps_one_by_one_and_their_gradients(network, chunk):
    obs, first, state = chunk
    whole, after = network(obs, first, state)
    (whole.square().sum() + after[MEMORY].sum()).backward()
    gradients = {name: p.grad.clone() for name, p in network.gru.named_parameters()}
    network.zero_grad()
    latents = []
    for step in range(STEPS):
        seen = {"speed": obs["speed"][:, step : step + 1]}
        latent, state = network(seen, first[:, step : step + 1], state)
        latents.append(latent)
    (torch.cat(latents, dim=1).square().sum() + state[MEMORY].sum()).backward()
    torch.testing.assert_close(torch.cat(latents, dim=1), whole)
    torch.testing.assert_close(state[MEMORY], after[MEMORY])
    for name, parameter in network.gru.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name])


def test_the_memory_is_that_of_pytorchs_cell_which_forgets_where_episodes_begin(network, chunk):
    obs, first, state = chunk
    with torch.no_grad():
        latent, after = network(obs, first, state)
        x = torch.relu(network.features_norm(network.numbers([obs["speed"]])))
        hidden, expected = state[MEMORY], []
        for step in range(STEPS):
            hidden = torch.where(first[:, step, None], torch.zeros(()), hidden)
            hidden = network.gru(x[:, step], hidden)
            expected.append(network.norm(x[:, step] + hidden))
    torch.testing.assert_close(latent, torch.stack(expected, dim=1))
    torch.testing.assert_close(after[MEMORY], hidden)


def test_kernels_and_strides_decide_how_small_a_frame_may_be():
    assert ConvGRUConfig().smallest_side == 36
    fine = ConvGRUConfig.from_options({"kernels": [4, 3, 3], "strides": [4, 1, 2]})
    assert fine.smallest_side == 20
    encoder = FrameEncoder((20, 20, 3), fine)
    assert encoder.linear.in_features == fine.channels[-1]
    with pytest.raises(InvalidOptionsError, match=r"strides must be three integers from 1 to 64"):
        ConvGRUConfig.from_options({"strides": [4, 0, 2]})


@pytest.mark.parametrize("size", [(64, 64), (72, 128), (37, 51)])
@pytest.mark.parametrize("strides", [[4, 2, 1], [3, 1, 2], [1, 5, 3]])
def test_the_linear_layer_reads_what_the_convolutions_leave(size, strides):
    encoder = FrameEncoder((*size, 3), ConvGRUConfig.from_options({"strides": strides}))
    frames = torch.zeros(2, 1, *size, 3, dtype=torch.uint8)
    assert encoder(frames).shape == (2, 1, ConvGRUConfig().hidden_size)


@pytest.mark.parametrize(
    ("shape", "dtype", "filters"),
    [
        ((7, 7, 3), np.uint8, (3, 3, 3)),
        ((10, 12, 4), np.bool_, (3, 3, 3)),
        ((16, 20, 1), np.float32, (4, 3, 3)),
        ((35, 40), np.uint8, (4, 3, 3)),
        ((84, 84), np.uint8, (8, 4, 3)),
        ((4, 84, 84), np.uint8, (8, 4, 3)),
    ],
)
def test_frames_of_any_size_are_seen_with_convolutions(shape, dtype, filters):
    part = ObservationPart(shape, np.dtype(dtype))
    assert is_frame(part)
    encoder = FrameEncoder(shape, ConvGRUConfig())
    kernels = [m.kernel_size[0] for m in encoder.convolutions if isinstance(m, torch.nn.Conv2d)]
    assert tuple(kernels) == filters
    frames = np.random.default_rng(0).integers(0, 2, (2, 3, *shape)).astype(dtype)
    features = encoder(torch.from_numpy(frames))
    assert features.shape == (2, 3, ConvGRUConfig().hidden_size)
    assert not torch.equal(features[0, 0], features[0, 1])


def test_channels_may_come_first_or_last():
    frames = torch.randint(0, 256, (1, 1, 4, 40, 36), dtype=torch.uint8)
    torch.manual_seed(0)
    first = FrameEncoder((4, 40, 36), ConvGRUConfig())(frames)
    torch.manual_seed(0)
    last = FrameEncoder((40, 36, 4), ConvGRUConfig())(frames.permute(0, 1, 3, 4, 2).contiguous())
    torch.testing.assert_close(first, last)


@pytest.mark.parametrize("shape", [(6, 9, 3), (5, 5), (64,), ()])
def test_what_is_too_small_or_flat_is_no_frame(shape):
    assert not is_frame(ObservationPart(shape, np.dtype(np.uint8)))
    assert not is_frame(ObservationPart((40, 40), np.dtype(np.float32))), "a matrix of numbers"


def test_each_value_of_a_choice_has_its_own_weights():
    encoder = ChoicesEncoder(Values((5, 3), (2, -1)), SIZE)
    part = torch.tensor([[[2, -1], [6, 1]]])
    weight, bias = encoder.linear.weight, encoder.linear.bias
    expected = [weight[:, 0] + weight[:, 5] + bias, weight[:, 4] + weight[:, 7] + bias]
    torch.testing.assert_close(encoder(part)[0], torch.stack(expected))
    padding = torch.zeros(1, 1, 2, dtype=torch.int64)
    assert encoder(padding).isfinite().all(), "zeros need not be among the values"


def test_choices_of_two_or_of_very_many_values_are_read_as_numbers():
    sizes = {"two": (2, 2), "many": (8641,), "some": (3,)}
    parts = {n: ObservationPart((len(s),), np.dtype(np.int64)) for n, s in sizes.items()}
    values = {n: Values(s, (0,) * len(s)) for n, s in sizes.items()}
    heads = heads_for(gym.spaces.Dict(way=gym.spaces.Discrete(3)), SIZE)
    network = ConvGRUNetwork(ConvGRUConfig(hidden_size=SIZE), parts, heads, values)
    assert [encoder.linear.in_features for encoder in network.choices] == [3]
    assert network.numbers.linear.in_features == 2 + 1


@pytest.mark.parametrize("name", ["keys", "a.b", "", "training"])
def test_an_action_that_cannot_name_a_part_of_the_network_is_refused(name):
    with pytest.raises(InvalidOptionsError, match=r"key of the action space must be another word"):
        heads_for(gym.spaces.Dict({name: gym.spaces.Discrete(3)}), SIZE)


def test_frequencies_tell_near_places_apart():
    encoder = NumbersEncoder(2, SIZE, ConvGRUConfig.from_options({"frequencies": 3}).frequencies)
    assert encoder.linear.in_features == 2 * 7
    torch.nn.init.eye_(encoder.linear.weight)
    torch.nn.init.zeros_(encoder.linear.bias)
    places = torch.tensor([[[0.25, -1.0], [0.375, 0.5]]])
    with torch.no_grad():
        told = encoder([places[..., :1], places[..., 1:]])[0, :, :14].numpy()
    for place, features in zip(places[0].numpy(), told, strict=True):
        waves = [np.arcsinh(place)]
        for frequency in (1, 2, 4):
            waves += [np.sin(np.pi * frequency * place), np.cos(np.pi * frequency * place)]
        np.testing.assert_allclose(features, np.concatenate(waves), atol=1e-5)
    assert NumbersEncoder(2, SIZE, ConvGRUConfig().frequencies).linear.in_features == 2
