"""An auxiliary loss that holds the policy to recorded episodes, beside PPO's (MineStudio's PPOBC).

With every minibatch of fragments comes a minibatch of windows of demonstrations. Its loss
(`cloning_loss.py`), times `coeff`, is added to the minibatch's; it trains the policy, not the
values. As a mean over the steps to imitate it does not depend on their number, unlike MineStudio's,
which sums over the steps of a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from numpy.typing import NDArray

from rllib_minestudio.algorithms.learner.batch import Tensors
from rllib_minestudio.algorithms.learner.cloning_loss import cloning_loss
from rllib_minestudio.algorithms.learner.distributed import Peers
from rllib_minestudio.algorithms.learner.forward import window_chunks
from rllib_minestudio.algorithms.options.ppo import BehaviourCloningOptions, PPOOptions
from rllib_minestudio.algorithms.policy_windows import unreadable_parts, window_options
from rllib_minestudio.demonstrations import (
    Window,
    find_episodes,
    open_episode,
    stack,
    stream,
)
from rllib_minestudio.episode_seeds import derived_seed
from rllib_minestudio.errors import RecordingError
from rllib_minestudio.models.recurrent_rl_module import ACTION_DIST, RecurrentRLModule

LOSS = "behaviour_cloning_loss"


class BehaviourCloning:
    """Draws demonstrations, the next ones while the learner computes, and adds their gradients.

    Args:
        module: In training, without its distributed wrapper.
        options: With `recordings`.
        context_length: Steps per chunk.
        seed: Of the order of demonstrations, together with the learner's rank and the iteration at
            which it begins.
        rank: Of the learner.

    Raises:
        RecordingError: A recording lacks what the policy reads.
    """

    def __init__(
        self,
        module: RecurrentRLModule,
        options: BehaviourCloningOptions,
        *,
        context_length: int,
        seed: int,
        rank: int,
    ) -> None:
        """Open the recordings."""
        self._module = module
        self._options = options
        self._context_length = context_length
        self._burn_in = module.memory_length
        assert options.recordings is not None
        paths, parts = find_episodes(options.recordings), module.observation_parts
        for problem in unreadable_parts(parts, paths):
            raise RecordingError(f"behaviour_cloning.recordings: {problem}")
        self._episodes = [open_episode(path) for path in paths]
        self._window_options = window_options(parts, options.fragment_length, self._burn_in)
        self._seed, self._rank = seed, rank
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="demonstrations")
        self._windows: Iterator[Window] | None = None
        self._next: Future[dict[str, NDArray]]

    def begin_anew(self) -> None:
        """Draw from another order after the next `go_on_at`, as training goes on elsewhere."""
        self._windows = None

    def go_on_at(self, iteration: int) -> None:
        """Begin to draw, if that has not begun.

        Args:
            iteration: Iterations finished so far; a resumed run does not begin with the windows
                that the run began with.
        """
        if self._windows is None:
            self._windows = stream(
                self._episodes,
                self._window_options,
                seed=derived_seed(self._seed, self._rank, iteration),
                shuffle_among=self._options.shuffle_among,
            )
            self._next = self._executor.submit(self._draw, self._windows)

    def accumulate(self, module: Any, share: float) -> Tensors:
        """Add the gradients of one minibatch of demonstrations to those accumulated so far.

        Args:
            module: The module or its distributed wrapper; nothing is synchronised here.
            share: Of this minibatch in the coming optimizer step.

        Returns:
            The loss without `coeff`, a scalar without gradient, by its name.
        """
        assert self._windows is not None
        drawn = self._next.result()
        self._next = self._executor.submit(self._draw, self._windows)
        device = self._module.device
        windows = {name: torch.from_numpy(array).to(device) for name, array in drawn.items()}
        steps = windows["weight"].sum().clamp(min=1.0)
        loss = torch.zeros((), device=device)
        for chunk, outputs in window_chunks(
            module, windows, burn_in=self._burn_in, context_length=self._context_length
        ):
            part = cloning_loss(outputs[ACTION_DIST], chunk, chunk["weight"], still_camera=False)
            mean = part.loss / steps
            (mean * (self._options.coeff * share)).backward()
            loss += mean.detach()
        return {LOSS: loss}

    def close(self) -> None:
        """Let the thread end."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _draw(self, windows: Iterator[Window]) -> dict[str, NDArray]:
        return stack([next(windows) for _ in range(self._options.fragments_per_minibatch)])


def build_cloning(
    options: PPOOptions, module: RecurrentRLModule, peers: Peers, *, seed: int
) -> BehaviourCloning | None:
    """The auxiliary loss that the options ask for.

    Args:
        options: Of the algorithm.
        module: In training, without its distributed wrapper.
        peers: The learners that train together; each gets demonstrations of its own.
        seed: The same for all of them.
    """
    cloning = BehaviourCloningOptions(**options.behaviour_cloning)
    if cloning.recordings is None:
        return None
    return BehaviourCloning(
        module,
        cloning,
        context_length=options.context_length,
        seed=seed,
        rank=peers.rank,
    )
