"""Which checkpoint an experiment starts from, written down before it starts.

`results/cow/best` may be another one when a run is resumed, and a run must not go on with another
prior than it began with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_minestudio.algorithms.options.ppo import INITIAL_PRIOR
from rllib_minestudio.checkpoints.lookup import pinned
from rllib_minestudio.experiments.reading.experiment_file import Experiment


def pin_weights(experiment: Experiment) -> None:
    """Replace folders, `latest` and `best` in `model.weights` and `prior` by what they mean now."""
    config = experiment.config
    model = config.get("model")
    if isinstance(model, dict) and "weights" in model:
        model["weights"] = _pinned(model["weights"])
    if "prior" in config:
        config["prior"] = _pinned(config["prior"])


def _pinned(value: Any) -> Any:
    """Pin a source of weights, or each of those that are searched."""
    if isinstance(value, Mapping):
        return {
            key: [_pinned(choice) for choice in choices] if isinstance(choices, list) else choices
            for key, choices in value.items()
        }
    return value if value == INITIAL_PRIOR else pinned(value)
