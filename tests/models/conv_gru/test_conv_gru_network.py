"""The network's memory: chunks and single steps agree, and it is PyTorch's GRU cell."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.observations import ObservationPart
from rllib_minestudio.models.conv_gru import ConvGRUConfig, ConvGRUNetwork
from rllib_minestudio.models.conv_gru.network import MEMORY, FrameEncoder, NumbersEncoder
from rllib_minestudio.models.conv_gru_rl_module import heads_for

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
