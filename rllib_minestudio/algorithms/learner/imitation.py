"""Learning from demonstrations: MineStudioBC's learner, and MineStudioPPO's auxiliary loss.

MineStudioBC's learner takes one optimizer step per batch of windows.

A reader's path: `update` -> `_train` -> `window_chunks` of `policy_learner.py`, which carries the
memory from chunk to chunk, as the PPO learner does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from ray.rllib.core import ALL_MODULES, DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import NUM_ENV_STEPS_TRAINED, NUM_ENV_STEPS_TRAINED_LIFETIME
from torch import Tensor

from rllib_minestudio.algorithms.demonstration_data import Batch
from rllib_minestudio.algorithms.learner.batch import Tensors
from rllib_minestudio.algorithms.learner.gradient_step import GradientStep, Peers, require_finite
from rllib_minestudio.algorithms.learner.policy_learner import (
    PolicyLearner,
    keep_freed_memory,
    window_chunks,
)
from rllib_minestudio.algorithms.options import BehaviourCloningOptions, CloningOptions, PPOOptions
from rllib_minestudio.algorithms.policy_config import unreadable_parts, window_options
from rllib_minestudio.demonstrations import (
    Window,
    find_episodes,
    open_episode,
    stack,
    stream,
)
from rllib_minestudio.errors import RecordingError
from rllib_minestudio.foundation.episode_seeds import derived_seed
from rllib_minestudio.models.distributions import ActionDistribution
from rllib_minestudio.models.policy import ACTION_DIST, RecurrentRLModule
from rllib_minestudio.models.vpt.network import NULL_CAMERA

VALIDATION = "validation"
"""Prefix of the metrics of held-out episodes."""


class MineStudioBCLearner(PolicyLearner):
    """Trains a `RecurrentRLModule` to imitate demonstrations."""

    config: CloningOptions

    def build(self) -> None:
        """Build the module and the optimizer."""
        super().build()
        if self._device.type == "cpu":
            keep_freed_memory()
        self._memory: Tensors | None = None
        self._step = GradientStep(
            self.policy.network,
            self.get_optimizer(DEFAULT_MODULE_ID),
            hooks=self,
            max_nonfinite=self.config.max_nonfinite_minibatches,
            peers=Peers(1),
        )

    def update(
        self, *, training_data: TrainingData, timesteps: dict[str, Any], num_iters: int, **_: Any
    ) -> dict[str, Any]:
        """Take `num_iters` optimizer steps.

        Args:
            training_data: Has one iterator over batches of windows.
            timesteps: Has RLlib's count of environment steps, for the learning rate's schedule.
            num_iters: Batches to take from the iterator.

        Returns:
            The metrics.

        Raises:
            NonFiniteLossError: After `max_nonfinite_minibatches` batches in a row.
        """
        self._check_is_built()
        self.before_gradient_based_update(timesteps=timesteps)
        (batches,) = training_data.data_iterators
        sums: dict[str, float] = defaultdict(float)
        for _step in range(num_iters):
            for name, value in self._train(next(batches)).items():
                sums[name] += value
        self._weights_seq_no += 1
        require_finite(
            self.policy.network, self.get_optimizer(DEFAULT_MODULE_ID), self._weights_seq_no
        )
        steps = sums.pop("steps")
        norm = sums.pop("gradient_norm") / num_iters
        losses = {name: value / steps for name, value in sums.items()} if steps else {}
        self._log(losses | {"gradient_norm": norm})
        for key, reduce in (
            (NUM_ENV_STEPS_TRAINED, "sum"),
            (NUM_ENV_STEPS_TRAINED_LIFETIME, "lifetime_sum"),
        ):
            self.metrics.log_value((ALL_MODULES, key), int(steps), reduce=reduce)
        self.after_gradient_based_update(timesteps=timesteps)
        return self.metrics.reduce()

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state, and drop the memory, since different windows will follow."""
        super().set_state(state)
        self._memory = None

    @torch.no_grad()
    def validate(self, batches: Iterable[Batch]) -> dict[str, float]:
        """Return the weighted mean losses over held-out windows, in nats per step.

        The result is empty if there is no step to imitate.
        """
        sums: dict[str, float] = defaultdict(float)
        memory: Tensors | None = None
        for batch in batches:
            for chunk, outputs in self._chunks(self._on_device(batch), memory):
                sums["steps"] += float(chunk["weight"].sum())
                for name, value in self._chunk_loss(chunk, outputs)._asdict().items():
                    sums[name] += float(value)
            memory = self._kept(outputs)
        steps_total = sums.pop("steps", 0.0)
        if not steps_total:
            return {}
        return {f"{VALIDATION}_{name}": value / steps_total for name, value in sums.items()}

    def _train(self, batch: Batch) -> dict[str, float]:
        """Take one optimizer step; return sums over the batch's steps, and their number."""
        tensors = self._on_device(batch)
        total = tensors["weight"].sum()
        self._sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=self._device))
        losses = []
        for chunk, outputs in self._chunks(tensors, self._memory):
            chunk["num_steps"] = total.clamp(min=1)
            losses.append(self.learn_from_chunk(chunk, outputs))
        step = self._step.step(loss=torch.stack(losses).sum(), minibatches=1)
        # A memory with NaN or infinite numbers would spoil all later batches.
        self._memory = self._kept(outputs) if step.taken else None
        numbers = {**self._sums, "steps": total, "gradient_norm": step.gradient_norm}
        return {name: float(value) for name, value in numbers.items()}

    def _chunks(
        self, windows: Tensors, memory: Tensors | None
    ) -> Iterator[tuple[Tensors, dict[str, Any]]]:
        """Yield each chunk of a batch of windows, and the outputs of `forward_train` for it."""
        return window_chunks(
            self.module[DEFAULT_MODULE_ID],
            windows,
            burn_in=windows["first"].shape[1] - self.config.window_length,
            context_length=self.config.context_length,
            state=memory,
        )

    def _kept(self, outputs: dict[str, Any]) -> Tensors | None:
        """Return the memory for the next batch's windows, if it is carried."""
        if not self.config.carry_memory:
            return None
        return {name: tensor.detach() for name, tensor in outputs[Columns.STATE_OUT].items()}

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Tensors, fwd_out: dict[str, Any]
    ) -> Tensor:
        """Return the loss of one chunk: its part of the mean over the steps to imitate.

        Args:
            module_id: Id of the only module.
            config: The module's config.
            batch: `image` and all other parts that the policy reads, `first`, `buttons`, `camera`
                and `weight` (as in `Window`), all (B, T, ...), and `num_steps`, the sum of all
                weights in the optimizer step. A subclass must weight its own terms by
                `weight / num_steps` as well.
            fwd_out: The outputs of `forward_train` for the chunk.

        Returns:
            A scalar with gradient.
        """
        parts = self._chunk_loss(batch, fwd_out)
        for name, value in parts._asdict().items():
            self._sums[name] += value.detach()
        return parts.loss / batch["num_steps"]

    def _chunk_loss(self, chunk: Tensors, outputs: dict[str, Any]) -> CloningLoss:
        return cloning_loss(
            outputs[ACTION_DIST],
            chunk,
            chunk["weight"],
            still_camera=self.config.still_camera,
        )

    def _on_device(self, batch: Batch) -> Tensors:
        return {
            name: torch.from_numpy(array).to(self._device, non_blocking=True)
            for name, array in batch.items()
        }

    def _log(self, scalars: dict[str, float]) -> None:
        for name, scalar in scalars.items():
            self.metrics.log_value((DEFAULT_MODULE_ID, name), scalar, window=1)


# -------------------------------- the loss of behaviour cloning, for MineStudioBC and MineStudioPPO
# Both learn from windows of recorded episodes (`demonstrations/windows.py`): burn-in frames, which
# rebuild the memory, followed by the steps to imitate, whose `weight` is 1.


class CloningLoss(NamedTuple):
    """Sums over the steps to imitate, in nats; divide by their number.

    Attributes:
        loss: Loss of both heads, with gradient.
        buttons: Loss of the buttons, without gradient.
        camera: Loss of the camera, without gradient.
    """

    loss: Tensor
    buttons: Tensor
    camera: Tensor


def cloning_loss(
    distribution: ActionDistribution,
    action: Mapping[str, Tensor],
    weight: Tensor,
    *,
    still_camera: bool = True,
) -> CloningLoss:
    """Return the negative log-likelihood of demonstrated tokens.

    In VPT's objective (Baker et al. 2022, section 4.1), the camera's term counts in every step; if
    the mouse does not move, its token is the null token. MineStudio's auxiliary loss
    (`BehaviorCloneCallback`) leaves those steps out of the camera's term.

    Args:
        distribution: The policy's, (B, T), with gradient.
        action: Tokens per head, (B, T) int64; other keys are ignored.
        weight: (B, T), how much a step counts; 0 for a step that is not imitated.
        still_camera: Whether the camera's term counts in steps in which the camera does not turn.
    """
    logp = distribution.log_probs(action)
    if not still_camera:
        logp["camera"] = logp["camera"] * (action["camera"] != NULL_CAMERA)
    buttons, camera = (-(logp[name] * weight).sum() for name in ("buttons", "camera"))
    return CloningLoss(buttons + camera, buttons.detach(), camera.detach())


# ---------------------------------------------- MineStudioPPO's auxiliary loss (MineStudio's PPOBC)
# Every minibatch of fragments is accompanied by a minibatch of windows of demonstrations, whose
# loss (`cloning_loss`) times `coeff` is added to the minibatch's. It trains the policy, not the
# values. It is a mean over the steps to imitate, and so does not depend on their number, unlike
# MineStudio's, which sums over the steps of a window.

LOSS = "behaviour_cloning_loss"


class BehaviourCloning:
    """Draws demonstrations, one minibatch ahead in a thread, and accumulates their gradients.

    Args:
        module: The module in training, without its distributed wrapper.
        options: The loss's options; `recordings` must be set.
        context_length: Steps per chunk.
        seed: Determines the order of demonstrations, together with the learner's rank and the first
            iteration.
        rank: The learner's rank.

    Raises:
        RecordingError: If a recording lacks an observation part that the policy reads.
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
        """Draw in a new order from the next `go_on_at` on, after a restore."""
        self._windows = None

    def go_on_at(self, iteration: int) -> None:
        """Start drawing, unless already started.

        The order depends on the iteration, so that a resumed run does not repeat its first windows.
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
        """Accumulate the gradients of one minibatch of demonstrations.

        Args:
            module: The module or its distributed wrapper; nothing is synchronised here.
            share: Weight of this minibatch in the next optimizer step.

        Returns:
            The loss without `coeff`, a scalar without gradient, under its metric's name.
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
        """End the thread."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _draw(self, windows: Iterator[Window]) -> dict[str, NDArray]:
        return stack([next(windows) for _ in range(self._options.fragments_per_minibatch)])


def build_cloning(
    options: PPOOptions, module: RecurrentRLModule, peers: Peers, *, seed: int
) -> BehaviourCloning | None:
    """Build the auxiliary loss; None if the options have no recordings.

    With the same seed for all learners, each draws its own demonstrations.
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
