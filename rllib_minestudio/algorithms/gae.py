"""Generalised advantage estimation over fragments: a pure function of arrays.

Axes: `b` fragment, `t` step within the fragment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Advantages(NamedTuple):
    """What GAE returns; both arrays are (B, T) float32."""

    advantage_bt: NDArray[np.float32]
    value_target_bt: NDArray[np.float32]


def compute_gae(
    *,
    reward_bt: NDArray[np.floating],
    value_bt: NDArray[np.floating],
    terminated_bt: NDArray[np.bool_],
    truncated_bt: NDArray[np.bool_],
    bootstrap_value_bt: NDArray[np.floating],
    last_value_b: NDArray[np.floating],
    gamma: float,
    lambda_: float,
) -> Advantages:
    """Advantages and value targets of a batch of fragments.

    Schulman et al. 2015, "High-dimensional continuous control using generalized advantage
    estimation", equations 11 to 16, with the two ways an episode can end kept apart: after a
    *termination* the future is worth nothing; after a *truncation* it is worth the value of the
    observation that would have followed. Either way the trace is cut, because the next row
    belongs to another episode. MineStudio (`online/utils/train/ppo`) counts both as done.

    Args:
        reward_bt: Reward of each step, (B, T).
        value_bt: Value of the observation of each step, (B, T), in units of return.
        terminated_bt: Whether the episode terminated with this step, (B, T).
        truncated_bt: Whether the episode was truncated after this step, (B, T). Where both are
            set, termination wins.
        bootstrap_value_bt: Value of the observation that follows a truncated step, (B, T); read
            only where `truncated_bt` is set.
        last_value_b: Value of the observation that follows the fragment's last step, (B,); read
            only where that step ended no episode.
        gamma: Discount per step, in [0, 1].
        lambda_: Trace decay, in [0, 1]: 0 is the one-step TD error, 1 the Monte Carlo return.

    Returns:
        Advantages and value targets (`advantage + value`).
    """
    next_value_bt = np.concatenate([value_bt[:, 1:], last_value_b[:, None]], axis=1)
    next_value_bt = np.where(truncated_bt, bootstrap_value_bt, next_value_bt)
    next_value_bt = np.where(terminated_bt, 0.0, next_value_bt).astype(np.float64)
    delta_bt = reward_bt + gamma * next_value_bt - value_bt
    decay_bt = gamma * lambda_ * ~(terminated_bt | truncated_bt)

    advantage_bt = np.empty_like(delta_bt)
    trace_b = np.zeros(len(delta_bt))
    for t in reversed(range(delta_bt.shape[1])):
        trace_b = delta_bt[:, t] + decay_bt[:, t] * trace_b
        advantage_bt[:, t] = trace_b
    return Advantages(
        advantage_bt=advantage_bt.astype(np.float32),
        value_target_bt=(advantage_bt + value_bt).astype(np.float32),
    )
