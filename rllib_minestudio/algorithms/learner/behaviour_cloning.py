"""An auxiliary loss that holds the policy to recorded episodes, beside PPO's (MineStudio's PPOBC).

With every minibatch of fragments comes a minibatch of demonstrations. Its loss, times `coeff`, is
added to the minibatch's; it trains the policy, not the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from torch import Tensor

from rllib_minestudio.algorithms.learner.batch import Tensors
from rllib_minestudio.algorithms.learner.distributed import Peers
from rllib_minestudio.algorithms.learner.forward import forward
from rllib_minestudio.algorithms.options.ppo import BehaviourCloningOptions
from rllib_minestudio.demonstrations import (
    WindowOptions,
    find_episodes,
    open_episode,
    stack,
    stream,
)
from rllib_minestudio.models.vpt.heads import NUM_CAMERA
from rllib_minestudio.models.vpt_rl_module import LOGITS, VPTRLModule

NULL_CAMERA = NUM_CAMERA // 2
"""The token of a camera that does not move."""

LOSS = "behaviour_cloning_loss"


def cloning_loss(logits: Mapping[str, Tensor], action: Tensors, weight: Tensor) -> Tensor:
    """Mean negative log-probability of what was done.

    MineStudio's `BehaviorCloneCallback`: the camera counts only where it moves. It sums over the
    steps of a window; here it is their mean, so that `coeff` does not depend on their number.

    Args:
        logits: Log-probabilities, {"buttons": (B, T, 8641), "camera": (B, T, 121)}.
        action: Tokens, (B, T) each.
        weight: (B, T), 1 where a step counts, else 0.

    Returns:
        A scalar; 0 if no step counts.
    """
    logp = {
        name: logits[name].gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        for name, tokens in action.items()
    }
    moves = action["camera"] != NULL_CAMERA
    total = ((logp["buttons"] + logp["camera"] * moves) * weight).sum()
    return -total / weight.sum().clamp(min=1.0)


class BehaviourCloning:
    """Draws demonstrations, the next ones while the learner computes, and adds their gradients.

    Args:
        module: In training, without its distributed wrapper.
        options: With `recordings`.
        context_length: Steps per chunk.
        seed: Of the order of demonstrations; each learner needs its own.
    """

    def __init__(
        self,
        module: VPTRLModule,
        options: BehaviourCloningOptions,
        *,
        context_length: int,
        seed: int,
    ) -> None:
        """Begin to draw."""
        config = module.network.config
        height, width, _ = config.img_shape
        self._module = module
        self._options = options
        self._context_length = context_length
        self._burn_in = config.memory_length
        assert options.recordings is not None
        self._windows = stream(
            [open_episode(path) for path in find_episodes(options.recordings)],
            WindowOptions(options.fragment_length, self._burn_in, size=(width, height)),
            seed=seed,
            shuffle_among=options.shuffle_among,
        )
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="demonstrations")
        self._next: Future[dict[str, NDArray]] = self._executor.submit(self._draw)

    def accumulate(self, module: Any, share: float) -> Tensors:
        """Add the gradients of one minibatch of demonstrations to those accumulated so far.

        Args:
            module: The module or its distributed wrapper; nothing is synchronised here.
            share: Of this minibatch in the coming optimizer step.

        Returns:
            The loss without `coeff`, a scalar without gradient, by its name.
        """
        drawn, self._next = self._next.result(), self._executor.submit(self._draw)
        device = self._module.network.net.final_ln.weight.device
        window = {name: torch.from_numpy(array).to(device) for name, array in drawn.items()}
        steps = window["weight"].sum().clamp(min=1.0)
        state = self._memory_before(window)
        loss = torch.zeros((), device=device)
        for start in range(self._burn_in, window["first"].shape[1], self._context_length):
            chunk = {name: t[:, start : start + self._context_length] for name, t in window.items()}
            out = forward(module, chunk["image"], chunk["first"], state)
            action = {name: chunk[name] for name in ("buttons", "camera")}
            part = chunk["weight"].sum() / steps
            chunk_loss = cloning_loss(out[LOGITS], action, chunk["weight"]) * part
            (chunk_loss * (self._options.coeff * share)).backward()
            state = {name: tensor.detach() for name, tensor in out[Columns.STATE_OUT].items()}
            loss += chunk_loss.detach()
        return {LOSS: loss}

    def close(self) -> None:
        """Let the thread end."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _draw(self) -> dict[str, NDArray]:
        count = self._options.fragments_per_minibatch
        return stack([next(self._windows) for _ in range(count)])

    @torch.no_grad()
    def _memory_before(self, window: Tensors) -> Tensors:
        """The memory that the frames before the steps to imitate leave."""
        state = self._module.network.initial_state(len(window["first"]))._asdict()
        for start in range(0, self._burn_in, self._context_length):
            rows = slice(start, min(start + self._context_length, self._burn_in))
            out = forward(self._module, window["image"][:, rows], window["first"][:, rows], state)
            state = out[Columns.STATE_OUT]
        return state


def build_cloning(config: Any, module: VPTRLModule, peers: Peers) -> BehaviourCloning | None:
    """The auxiliary loss that a config asks for.

    Args:
        config: A `MineStudioPPOConfig`.
        module: In training, without its distributed wrapper.
        peers: The learners that train together; each gets demonstrations of its own.
    """
    options = BehaviourCloningOptions(**config.behaviour_cloning)
    if options.recordings is None:
        return None
    return BehaviourCloning(
        module,
        options,
        context_length=config.context_length,
        seed=(config.seed or 0) * peers.count + peers.rank,
    )
