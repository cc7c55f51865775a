"""What the learners of all algorithms share: the network, its optimizer, and RLlib's hooks.

RLlib's learner takes one optimizer step per minibatch. Ours first accumulates the gradients of many
chunks, so its hooks are called at two rates. Per chunk: `compute_losses`, which calls
`compute_loss_for_module`, and `compute_gradients`. Per optimizer step: `postprocess_gradients`,
which calls `postprocess_gradients_for_module`, and `apply_gradients`. docs/rllib.md describes the
arguments and return value of each.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME
from torch import Tensor

from rllib_minestudio.algorithms.learner.batch import (
    Minibatch,
    MinibatchStream,
    SequenceBatch,
    Tensors,
    end_to_end,
    stacked_states,
)
from rllib_minestudio.algorithms.learner.gradient_step import (
    Gradients,
    restore_optimizers,
    total_norm,
)
from rllib_minestudio.algorithms.learner.value_targets import Evaluation
from rllib_minestudio.algorithms.options import Schedule
from rllib_minestudio.foundation.observations import nested
from rllib_minestudio.models.acting import advise, set_arithmetic
from rllib_minestudio.models.fine_tuning import parameter_groups
from rllib_minestudio.models.policy import ACTION_DIST, FIRST, RecurrentRLModule


class PolicyLearner(TorchLearner):
    """A learner with a `RecurrentRLModule` and AdamW.

    Attributes:
        gradient_norm: Global norm of the last optimizer step's gradient before clipping, a scalar;
            None if a subclass postprocesses gradients without calling this class.
    """

    gradient_norm: Tensor | None = None

    @property
    def policy(self) -> RecurrentRLModule:
        """The module in training, without its distributed wrapper."""
        return self.module[DEFAULT_MODULE_ID].unwrapped()

    def build(self) -> None:
        """Build module and optimizer, and set torch's arithmetic to the policy's `precision`."""
        super().build()
        if self.policy.precision is not None:
            set_arithmetic(self.policy.precision)  # for backward, outside the network's contexts
            advise(self.policy.precision, self.policy.device.type)

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Build AdamW (as in MineStudio) over all parameters that are not frozen."""
        groups = parameter_groups(
            self.module[module_id].unwrapped().network,
            config.lr_factors,
            weight_decay=config.weight_decay,
            eps=config.adam_eps,
        )
        optimizer = torch.optim.AdamW(groups, lr=0.0)
        self.register_optimizer(
            module_id=module_id,
            optimizer=optimizer,
            params=[parameter for group in optimizer.param_groups for parameter in group["params"]],
            lr_or_lr_schedule=self._rate_or_schedule(),
        )

    def _rate_or_schedule(self) -> Schedule | None:
        """Return the rate or schedule that RLlib is to set; None if it is not to set any."""
        rate: Schedule = self.config.lr
        return rate

    @staticmethod
    def _set_optimizer_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
        """Set the rate of every group to `lr` times its factor."""
        for group in optimizer.param_groups:
            group["lr"] = lr * group.get("lr_factor", 1.0)

    # ---------------------------------------------------------------- RLlib's hooks

    def learn_from_chunk(self, chunk: Any, outputs: dict[str, Any]) -> Tensor:
        """Accumulate the gradients of one chunk.

        Args:
            chunk: The `batch` of `compute_loss_for_module`.
            outputs: The outputs of `forward_train`, with gradient.

        Returns:
            The chunk's loss, a scalar without gradient.
        """
        losses = self.compute_losses(
            fwd_out={DEFAULT_MODULE_ID: outputs}, batch={DEFAULT_MODULE_ID: chunk}
        )
        for parameter, gradient in self.compute_gradients(losses).items():
            if gradient is not parameter.grad:
                parameter.grad = gradient
        return torch.stack([loss.detach() for loss in losses.values()]).sum()

    def compute_gradients(self, loss_per_module: Mapping[str, Tensor], **_: Any) -> Gradients:
        """Accumulate one chunk's gradients; called once per chunk.

        Args:
            loss_per_module: The result of `compute_losses` for the chunk.

        Returns:
            Parameter -> gradient accumulated so far, including this chunk's. What a subclass
            returns replaces the accumulated gradients.
        """
        torch.stack(list(loss_per_module.values())).sum().backward()
        parameters = self._params.values()
        return {p: p.grad for p in parameters if p.grad is not None}

    def postprocess_gradients_for_module(
        self, *, module_id: str, config: Any = None, module_gradients_dict: Gradients
    ) -> Gradients:
        """Clip the optimizer step's gradient by its global norm; called once per step.

        Args:
            module_id: Id of the only module.
            config: Its `grad_clip` is the maximum norm; None or 0: no limit.
            module_gradients_dict: Parameter -> gradient, summed over the step's chunks and
                averaged over the learners. Changed in place.
        """
        gradients = list(module_gradients_dict.values())
        self.gradient_norm = total_norm(gradients)
        limit = config.grad_clip or math.inf
        if limit < math.inf:
            factor = (limit / (self.gradient_norm + 1e-6)).clamp(max=1.0)
            torch._foreach_mul_(gradients, factor)
        return module_gradients_dict

    def apply_gradients(self, gradients_dict: Gradients) -> None:
        """Step the optimizer; called once per step, if all numbers are finite.

        Args:
            gradients_dict: The result of `postprocess_gradients`. Parameters that are not in it
                stay unchanged.
        """
        for parameter in self._params.values():
            parameter.grad = gradients_dict.get(parameter)
        self.get_optimizer(DEFAULT_MODULE_ID).step()

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Set the current learning rate of the config's `lr`.

        RLlib only does so after an update, so the first update would use the rate of an earlier
        step, or after a restore that of another config.
        """
        super().before_gradient_based_update(timesteps=timesteps)
        now = timesteps.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0)
        for optimizer, schedule in self._optimizer_lr_schedules.items():
            self._set_optimizer_lr(optimizer, schedule.update(now))

    def _set_optimizer_state(self, state: dict[str, Any]) -> None:
        """Restore the moments; unlike RLlib's version, keep the config's options."""
        restore_optimizers(self._named_optimizers, state)


# -------------------------------------- keeping freed memory in the process while training on a CPU
# glibc returns every large block to the kernel as soon as it is freed, and faults it in again, page
# by page, at the next allocation. A training step frees and allocates hundreds of megabytes of
# activations, so these faults can take more than half of its time.

# Parameter numbers of mallopt(3), glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

_LARGE = 2**31 - 1


def keep_freed_memory() -> bool:
    """Raise this process's glibc thresholds for returning memory to the kernel.

    Returns:
        Whether it took effect; False where the C library is not glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGE)) & bool(mallopt(_M_TRIM_THRESHOLD, _LARGE))


# ------------------- running the network over recorded sequences and demonstrations, chunk by chunk


def forward(module: Any, obs: Tensors, first: Tensor, state: Tensors) -> dict[str, Any]:
    """Run `forward_train` on one chunk.

    Args:
        module: A `RecurrentRLModule`, or its distributed wrapper.
        obs: (B, T, ...) each part.
        first: (B, T) bool.
        state: Memory before the chunk, leading axis B.
    """
    return module.forward_train({Columns.OBS: nested(obs), FIRST: first, Columns.STATE_IN: state})


def window_chunks(
    module: Any,
    windows: Tensors,
    *,
    burn_in: int,
    context_length: int,
    state: Tensors | None = None,
) -> Iterator[tuple[Tensors, dict[str, Any]]]:
    """Run the network over windows of demonstrations (truncated backpropagation through time).

    The burn-in rebuilds the memory, without gradients. Each chunk then starts from the memory after
    the previous one, detached.

    Args:
        module: A `RecurrentRLModule`, or its distributed wrapper.
        windows: The fields of `demonstrations.Window`, with a leading axis of windows.
        burn_in: Frames of each window before its steps to imitate.
        context_length: Steps per chunk.
        state: The memory before the windows, leading axis of windows; None: empty.

    Yields:
        Each chunk, and the outputs of `forward_train` for it.
    """
    policy: RecurrentRLModule = module.unwrapped()
    names = policy.observation_parts
    num_windows, num_frames = windows["first"].shape
    state = policy.initial_state(num_windows) if state is None else state
    if burn_in:
        with torch.no_grad():
            obs = {name: windows[name][:, :burn_in] for name in names}
            state = forward(policy, obs, windows["first"][:, :burn_in], state)[Columns.STATE_OUT]
    for start in range(burn_in, num_frames, context_length):
        chunk = {name: t[:, start : start + context_length] for name, t in windows.items()}
        outputs = forward(module, {name: chunk[name] for name in names}, chunk["first"], state)
        state = {name: tensor.detach() for name, tensor in outputs[Columns.STATE_OUT].items()}
        yield chunk, outputs


def evaluate(
    module: RecurrentRLModule,
    sequences: SequenceBatch,
    *,
    stream: MinibatchStream,
    context_length: int,
    batch_size: int,
) -> Evaluation:
    """Compute log-probabilities and values of recorded steps under the module's weights.

    All observations, including the final ones of truncated episodes, are evaluated with the memory
    of the steps before them, computed with the same weights.

    Args:
        module: The module, without its distributed wrapper, as nothing is synchronised.
        sequences: The sequences to evaluate.
        stream: Moves them to the module's device.
        context_length: Steps per forward pass.
        batch_size: Maximum number of sequences per forward pass, which bounds the memory used.
    """
    indices = range(len(sequences))
    groups = [sequences.select(indices[i : i + batch_size]) for i in indices[::batch_size]]
    minibatches = stream.stream(_all_observations, groups)
    parts = []
    for group in groups:
        logp, value = _run(module, next(minibatches), context_length)
        parts += [
            places.read(*numbers)
            for places, *numbers in zip(_all_places(group), logp, value, strict=True)
        ]
    return Evaluation(*(np.stack(arrays) for arrays in zip(*parts, strict=True)))


@torch.no_grad()
def _run(
    module: RecurrentRLModule, minibatch: Minibatch, context_length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return log-probabilities of the actions, and values in units of return, of all frames."""
    state = minibatch.state_in
    logp, value = [], []
    for chunk in minibatch.chunks(context_length):
        out = forward(module, chunk.obs, chunk.first, state)
        logp.append(out[ACTION_DIST].log_prob(chunk.action))
        value.append(out[Columns.VF_PREDS])
        state = out[Columns.STATE_OUT]
    return torch.cat(logp, dim=1).cpu().numpy(), torch.cat(value, dim=1).cpu().numpy()


@dataclass(frozen=True)
class _Places:
    """Indices of a sequence's frames once the final observations are inserted.

    The final observation of an episode truncated after step t has no step of its own. Inserted
    after step t, it is evaluated with the right memory, and affects no other frame, since the next
    one begins another episode. So all values come from one pass over T + N + 1 frames::

        steps       0 1 2 | 3 4          (| the episode was truncated)
        frames      0 1 2 F 3 4 L        (F final observation, L the one after the last step)
    """

    steps: np.ndarray
    finals: np.ndarray
    cut_steps: np.ndarray

    @property
    def last(self) -> int:
        """Index of the observation after the last step."""
        return len(self.steps) + len(self.finals)

    def read(
        self, logp: np.ndarray, value: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return an `Evaluation`'s fields for one sequence, from arrays over its frames."""
        bootstrap_value = np.full(len(self.steps), np.nan, np.float32)
        bootstrap_value[self.cut_steps] = value[self.finals]
        return logp[self.steps], value[self.steps], bootstrap_value, value[self.last]


def _all_places(sequences: SequenceBatch) -> list[_Places]:
    places = []
    for cut in sequences.bootstraps:
        steps = np.arange(len(cut)) + np.cumsum(cut) - cut
        places.append(_Places(steps, steps[cut] + 1, np.flatnonzero(cut)))
    return places


def _all_observations(sequences: SequenceBatch) -> Minibatch:
    """Build a minibatch of all observations; shorter sequences are padded by one-frame episodes."""
    all_places = _all_places(sequences)
    length = max(places.last for places in all_places) + 1
    obs = {
        name: np.zeros((len(sequences), length, *last.shape), last.dtype)
        for name, last in sequences.last_obs[0].items()
    }
    first = np.ones((len(sequences), length), np.bool_)
    tokens = {name: np.zeros(first.shape, np.int64) for name in sequences.action}
    for i, places in enumerate(all_places):
        for name, part in obs.items():
            part[i, places.steps] = end_to_end(sequences.obs[i][name])
            part[i, places.finals] = end_to_end(sequences.final_obs[i][name])
            part[i, places.last] = sequences.last_obs[i][name]
        first[i, places.steps] = sequences.first[i]
        first[i, places.finals] = False
        first[i, places.last] = sequences.last_first[i]
        for name, array in tokens.items():
            array[i, places.steps] = sequences.action[name][i]
    return Minibatch(
        obs={name: torch.from_numpy(part) for name, part in obs.items()},
        action={name: torch.from_numpy(array) for name, array in tokens.items()},
        first=torch.from_numpy(first),
        state_in=stacked_states(sequences),
    )
