"""What `benchmarks/vpt.py kernels` compares: networks of few channels with and without kernels.

Without them, stacks of few channels are computed layer by layer by torch, as they were before
there were any. What is called `all` also lists the 8,641 joint actions for log-probability, entropy
and KL, as factored heads did before they had sums over groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple
from unittest import mock

import torch

from rllib_minestudio.models.distributions import JointCategorical
from rllib_minestudio.models.kernels.engine_choice import TORCH
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.acting import InferenceSession
from rllib_minestudio.models.vpt.layers import DownStack
from rllib_minestudio.models.vpt.network import FactoredHead

SEQUENCES, CHUNK = 32, 64
"""Of an update: 2,048 frames."""

MINIBATCH = 8
"""Sequences in a gradient step."""

ENVIRONMENTS = 32
STEPS = 10
"""Of acting, in a call."""

THRESHOLDS = {"update, all": 2.2, "acting": 1.7}
"""Least ratios."""


class Pair(NamedTuple):
    """The same work, done twice."""

    name: str
    by_torch: Callable[[], None]
    by_kernels: Callable[[], None]


def pairs(config: VPTConfig) -> Iterator[Pair]:
    """Yields what is to be compared; both sides have the same weights."""
    torch.manual_seed(0)
    network, prior = VPTNetwork(config), VPTNetwork(config)
    with _without_kernels():
        without = _acting(network)
    yield Pair("acting", without, _acting(network))
    update = _update(network, prior)

    def update_by_torch() -> None:
        with _without_kernels():
            update()

    def update_by_torch_with_lists() -> None:
        with _without_kernels(), _with_lists():
            update()

    yield Pair("update", update_by_torch, update)
    yield Pair("update, all", update_by_torch_with_lists, update)


def _without_kernels() -> mock._patch:
    return mock.patch.object(DownStack, "engine_for", return_value=TORCH)


def _with_lists() -> mock._patch:
    def distribution(head: FactoredHead, latent_bte: torch.Tensor) -> JointCategorical:
        return JointCategorical(head(latent_bte), normalised=True)

    return mock.patch.object(FactoredHead, "distribution", distribution)


def _acting(network: VPTNetwork) -> Callable[[], None]:
    session = InferenceSession(network, ENVIRONMENTS)
    shape = (ENVIRONMENTS, *network.config.img_shape)
    image = torch.randint(0, 256, shape, dtype=torch.uint8)
    first = torch.zeros(ENVIRONMENTS, dtype=torch.bool)

    def act() -> None:
        for _ in range(STEPS):
            session.act(image, first)

    return act


def _update(network: VPTNetwork, prior: VPTNetwork) -> Callable[[], None]:
    """The prior's pass, forward and backward passes, and a step of the optimizer."""
    shape = (SEQUENCES, CHUNK)
    image = torch.randint(0, 256, (*shape, *network.config.img_shape), dtype=torch.uint8)
    first = torch.zeros(shape, dtype=torch.bool)
    tokens = {
        name: torch.randint(0, choices, shape)
        for name, choices in (("buttons", 8641), ("camera", 121))
    }
    target = torch.randn(shape)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-5)
    state = network.initial_state(MINIBATCH)

    def update() -> None:
        for start in range(0, SEQUENCES, MINIBATCH):
            rows = slice(start, start + MINIBATCH)
            with torch.no_grad():
                reference = prior.pi_head(prior.net(image[rows], first[rows], state)[0])
            latent, _ = network.net(image[rows], first[rows], state)
            policy = network.pi_head(latent)
            log_prob = policy.log_prob({name: token[rows] for name, token in tokens.items()})
            error = (network.value_head(latent) - target[rows]).square()
            kl = policy.kl_divergence(reference)
            loss = (0.2 * kl + 0.5 * error - target[rows] * log_prob).mean()
            (loss - 0.01 * policy.entropy().mean()).backward()
            optimizer.step()
            optimizer.zero_grad()

    return update
