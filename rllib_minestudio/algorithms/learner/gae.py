"""Generalised advantage estimation over fragments: a pure function of arrays.

Axes: `b` fragment, `t` step within the fragment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Advantages(NamedTuple):
    """The result of GAE; both arrays are (B, T) float32."""

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
    """Compute advantages and value targets of a batch of fragments.

    Schulman et al. 2015, "High-dimensional continuous control using generalized advantage
    estimation", equations 11 to 16, with a distinction between the two ways an episode can end:
    after a *termination* the future is worth nothing; after a *truncation* it is worth the value of
    the final observation. Either way the trace is cut, because the next step belongs to another
    episode. MineStudio (`online/utils/train/ppo`) treats both as done.

    Args:
        reward_bt: Reward of each step, (B, T).
        value_bt: Value of the observation of each step, (B, T), in units of return.
        terminated_bt: Whether the episode terminated with this step, (B, T).
        truncated_bt: Whether the episode was truncated after this step, (B, T). Where both are
            set, termination wins.
        bootstrap_value_bt: Value of the final observation after a truncated step, (B, T); read only
            where `truncated_bt` is set.
        last_value_b: Value of the observation after the fragment's last step, (B,); read only where
            that step did not end an episode.
        gamma: Discount per step, in [0, 1].
        lambda_: Trace decay, in [0, 1]: 0 is the one-step TD error, 1 the Monte Carlo return.

    Returns:
        Advantages and value targets (`advantage + value`).
    """
    # Time goes first, so that one step of all fragments is contiguous: the loop is over T only.
    reward_tb, value_tb = _by_time(reward_bt), _by_time(value_bt)
    terminated_tb, truncated_tb = terminated_bt.T, truncated_bt.T
    next_value_tb = np.concatenate([value_tb[1:], last_value_b[None]], dtype=np.float64)
    np.copyto(next_value_tb, bootstrap_value_bt.T, where=truncated_tb)
    np.copyto(next_value_tb, 0.0, where=terminated_tb)

    next_value_tb *= gamma
    next_value_tb += reward_tb
    next_value_tb -= value_tb
    advantage_tb = next_value_tb  # the TD error for now; the traces are added backwards in time
    decay_tb = np.where(terminated_tb | truncated_tb, 0.0, gamma * lambda_)
    trace_b = np.empty(len(reward_bt))
    for t in reversed(range(len(advantage_tb) - 1)):
        np.multiply(decay_tb[t], advantage_tb[t + 1], out=trace_b)
        advantage_tb[t] += trace_b
    return Advantages(
        advantage_bt=_by_fragment(advantage_tb),
        value_target_bt=_by_fragment(advantage_tb + value_tb),
    )


def _by_time(array_bt: NDArray) -> NDArray[np.float64]:
    """Convert (B, T) of any dtype to (T, B) float64, contiguous."""
    return np.ascontiguousarray(array_bt.T, np.float64)


def _by_fragment(array_tb: NDArray[np.float64]) -> NDArray[np.float32]:
    """Convert (T, B) to (B, T) float32, contiguous."""
    return np.ascontiguousarray(array_tb.T, np.float32)
