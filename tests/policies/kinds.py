"""The policies under test, and learners that train them without an Algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.algorithms.learner.batch import sequences_of
from rllib_minestudio.algorithms.learner.policy_learner import evaluate
from rllib_minestudio.algorithms.learner.value_targets import Evaluation
from rllib_minestudio.foundation.observations import flattened
from rllib_minestudio.models.policy import RecurrentRLModule
from tests.correctness.harness import Harness, config_of
from tests.policies.parts_env import PartsEnv

FOREIGN = "tests.policies.foreign.VectorLSTM"
"""Reads `vector` of whatever it is shown."""

MODELS: dict[str, dict[str, Any]] = {
    "ConvGRU": {"hidden_size": 8, "channels": [2, 2, 2], "text_size": 2},
    FOREIGN: {"size": 8},
}


def policy_options(name: str, **model: Any) -> dict[str, Any]:
    """What `training` needs to be told of a policy."""
    return {"module_class": name, "model": {**MODELS[name], **model}}


def harness_of(name: str, env_config: Mapping[str, Any] | None = None, **options: Any) -> Harness:
    """A harness for a policy in `PartsEnv`; options are those of `config_of`."""
    pool = {"mode": "inline", "max_restarts_per_hour": 0, **options.pop("env_pool", {})}
    chosen = {"fragment_length": 12, "num_envs": 3, **policy_options(name), **options}
    chosen["env_pool"] = pool
    return Harness(config_of(PartsEnv, dict(env_config or {}), **chosen))


def recomputed(harness: Harness, fragments: list[Any], join: int = 1) -> Evaluation:
    """What the learner's present weights say about fragments."""
    return evaluate(
        harness.learner.policy,
        sequences_of(fragments, join),
        stream=harness.learner._stream,
        context_length=harness.config.context_length,
        batch_size=harness.config.fragments_per_minibatch,
    )


Call = tuple[dict[str, NDArray], NDArray, bool]
"""Observations (B, T, ...) by part, `first` (B, T), and whether gradients were wanted."""


@contextmanager
def recorded(module: RecurrentRLModule) -> Iterator[list[Call]]:
    """What a policy's `latent` is given meanwhile."""
    import torch  # only here

    calls: list[Call] = []

    def latent(obs: Mapping[str, Any], first_bt: Any, state: Any) -> Any:
        flat = {name: part.detach().numpy().copy() for name, part in flattened(obs).items()}
        calls.append((flat, first_bt.numpy().copy(), torch.is_grad_enabled()))
        return type(module).latent(module, obs, first_bt, state)

    module.latent = latent  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        del module.latent


def has_no_nan(evaluation: Evaluation) -> bool:
    """Whether log-probabilities and values are numbers."""
    return bool(np.isfinite(evaluation.logp_bt).all() and np.isfinite(evaluation.value_bt).all())
