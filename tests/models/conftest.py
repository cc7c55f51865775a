"""A network small enough for tests that run in milliseconds, and processors that are not here."""

import pytest
import torch

from rllib_minestudio.models.kernels import engines
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from tests.models.processors import PRETENDED

# Networks this small gain nothing from threads, and waiting threads that spin cost a busy machine
# ten times the work.
torch.set_num_threads(1)

TINY_OPTIONS = {
    "preset": "nano",
    "img_shape": [16, 24, 3],
    "hidsize": 16,
    "attention_heads": 2,
    "attention_memory_size": 10,
    "timesteps": 4,
}
"""Options of a network whose memory holds 6 frames."""


@pytest.fixture
def tiny_options():
    return dict(TINY_OPTIONS)


@pytest.fixture(params=["factored", "joint"])
def network(request):
    torch.manual_seed(0)
    network = VPTNetwork(VPTConfig.from_options({**TINY_OPTIONS, "action_head": request.param}))
    # Initial heads are nearly constant; larger ones let differences show.
    for head in network.pi_head.values():
        torch.nn.init.normal_(head.linear_layer.weight)
    return network


@pytest.fixture
def images():
    """Two environments' frames: [2, 14, 16, 24, 3] uint8."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (2, 14, 16, 24, 3), dtype=torch.uint8, generator=generator)


@pytest.fixture
def pretend(monkeypatch):
    """Has engines chosen as on another processor, of `PRETENDED`."""

    def choose_as_on(processor):
        monkeypatch.setattr(engines, "detected", lambda with_kernels: processor)

    return choose_as_on


@pytest.fixture(params=PRETENDED)
def pretended(request, pretend):
    """The test runs on each engine that some processor would take."""
    pretend(PRETENDED[request.param])
