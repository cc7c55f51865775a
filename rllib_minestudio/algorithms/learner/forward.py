"""Running the network over recorded sequences and demonstrations, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from torch import Tensor

from rllib_minestudio.algorithms.learner.batch import (
    Minibatch,
    MinibatchStream,
    SequenceBatch,
    Tensors,
    end_to_end,
    stacked_states,
)
from rllib_minestudio.algorithms.learner.value_targets import Evaluation
from rllib_minestudio.foundation.observations import nested
from rllib_minestudio.models.policy import ACTION_DIST, FIRST, RecurrentRLModule


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
