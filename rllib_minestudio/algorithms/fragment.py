"""Fragments: the unit in which experience is collected, stored, transported and trained on.

A fragment is T consecutive steps of one environment. Episodes may begin and end inside it; the
`first` flags tell the network where its memory starts anew. Every array belongs to the step in
its row: `obs[t]` is what the agent saw, `action[t]` what it then did, `reward[t]`,
`terminated[t]` and `truncated[t]` what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray]


@dataclass(frozen=True, eq=False)
class Fragment:
    """T steps of one environment, with all that is needed to train on them later.

    Not a dict, list or tuple on purpose: RLlib flattens those when it resolves references.

    Attributes:
        obs: Images, (T, H, W, 3) uint8.
        action: {"buttons": (T,) int64, "camera": (T,) int64} tokens.
        reward: (T,) float32.
        first: (T,) bool, whether the row begins an episode.
        terminated: (T,) bool.
        truncated: (T,) bool.
        logp: (T,) float32, log-probability of the action under the behaviour policy.
        value: (T,) float32, the behaviour policy's value of `obs`, in units of return.
        bootstrap_value: (T,) float32, the value of the observation that followed a truncated
            step (that observation has no row: the next row starts another episode); NaN elsewhere.
        state_in: The network's memory before row 0, arrays without a batch axis.
        last_obs: The observation after the last row, (H, W, 3) uint8.
        last_first: Whether `last_obs` begins an episode.
        last_value: The behaviour policy's value of `last_obs`.
        weights_version_min: Oldest version of the weights that acted in this fragment.
        weights_version_max: Newest one.
        env_id: Names the environment, unique in a run.
        index: Counts the fragments of that environment from 0; consecutive ones are contiguous.
    """

    obs: NDArray[np.uint8]
    action: Arrays
    reward: NDArray[np.float32]
    first: NDArray[np.bool_]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    logp: NDArray[np.float32]
    value: NDArray[np.float32]
    bootstrap_value: NDArray[np.float32]
    state_in: Arrays
    last_obs: NDArray[np.uint8]
    last_first: bool
    last_value: float
    weights_version_min: int
    weights_version_max: int
    env_id: str
    index: int

    def __len__(self) -> int:
        """T."""
        return len(self.reward)

    @property
    def key(self) -> tuple[str, int]:
        """Identifies the fragment in a run."""
        return self.env_id, self.index


class FragmentRows:
    """The rows of n fragments under construction, one per environment, filled step by step.

    Floats start as NaN, so that a row nobody wrote shows at once.

    Args:
        num_envs: n.
        length: T.
        obs_shape: (H, W, 3).
    """

    def __init__(self, num_envs: int, length: int, obs_shape: tuple[int, ...]) -> None:
        """Allocate the rows."""
        rows = (num_envs, length)
        self.obs = np.empty((*rows, *obs_shape), np.uint8)
        self.action = {name: np.full(rows, -1, np.int64) for name in ("buttons", "camera")}
        self.reward = np.full(rows, np.nan, np.float32)
        self.logp = np.full(rows, np.nan, np.float32)
        self.value = np.full(rows, np.nan, np.float32)
        self.bootstrap_value = np.full(rows, np.nan, np.float32)
        self.first = np.zeros(rows, np.bool_)
        self.terminated = np.zeros(rows, np.bool_)
        self.truncated = np.zeros(rows, np.bool_)

    def write_decision(
        self,
        t: int,
        *,
        obs: NDArray,
        first: NDArray,
        action: Mapping[str, NDArray],
        logp: NDArray,
        value: NDArray,
    ) -> None:
        """Write what all n agents saw and decided at step t; arrays have a leading axis of n."""
        self.obs[:, t] = obs
        self.first[:, t] = first
        for name, tokens in action.items():
            self.action[name][:, t] = tokens
        self.logp[:, t] = logp
        self.value[:, t] = value

    def write_outcome(
        self, t: int, *, reward: NDArray, terminated: NDArray, truncated: NDArray
    ) -> None:
        """Write what came of step t; arrays have a leading axis of n."""
        self.reward[:, t] = reward
        self.terminated[:, t] = terminated
        self.truncated[:, t] = truncated

    def to_fragments(
        self,
        *,
        state_in: Arrays,
        last_obs: NDArray,
        last_first: NDArray,
        last_value: NDArray,
        weights_version: int,
        env_ids: list[str],
        index: int,
    ) -> list[Fragment]:
        """Cut the filled rows into one fragment per environment, without a copy of the rows.

        Args:
            state_in: Memory before row 0, arrays with a leading axis of n.
            last_obs: (n, H, W, 3) uint8.
            last_first: (n,) bool.
            last_value: (n,) float32.
            weights_version: The one version that acted.
            env_ids: n names.
            index: Of these fragments.
        """
        return [
            Fragment(
                obs=self.obs[i],
                action={name: tokens[i] for name, tokens in self.action.items()},
                reward=self.reward[i],
                first=self.first[i],
                terminated=self.terminated[i],
                truncated=self.truncated[i],
                logp=self.logp[i],
                value=self.value[i],
                bootstrap_value=self.bootstrap_value[i],
                state_in={name: array[i] for name, array in state_in.items()},
                last_obs=last_obs[i].copy(),
                last_first=bool(last_first[i]),
                last_value=float(last_value[i]),
                weights_version_min=weights_version,
                weights_version_max=weights_version,
                env_id=env_ids[i],
                index=index,
            )
            for i in range(len(env_ids))
        ]
