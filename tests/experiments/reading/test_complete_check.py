"""What the check accepts can be built and trained: nothing is found out after an hour's waiting.

The rule is: whatever can be computed without Ray and without playing is said before `measuring the
random policy`. Mistakes that somebody has thought of have tests of their own; here options are
changed at random, several at once, among them values at the ends of their bounds.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from rllib_minestudio.algorithms.options import PPOOptions
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.experiments.experiment_file import Experiment
from rllib_minestudio.experiments.plan import make_plan
from rllib_minestudio.foundation.options import bounds_of, default_of, group_of, keys_of, types_of
from rllib_minestudio.models.vpt.config import VPTConfig
from tests.cli.tiny import TINY

MOST = 6
"""Largest integer that is tried: larger sizes take long, and nothing else."""
NOT_TRIED = {"start_timeout_s", "reset_timeout_s", "step_timeout_s", "behaviour_cloning", "compile"}
"""Timeouts shorter than their work, data that must exist, and what takes long to compile."""
MODEL = {
    "hidsize": (8, 16, 24),
    "attention_heads": (1, 2, 3),
    "n_recurrence_layers": (1, 2),
    "attention_memory_size": (8, 17, 24),
    "timesteps": (4, 8, 16, 24),
    "action_head": ("joint", "factored"),
    "precision": ("float32", "bfloat16", "tf32"),
    "freeze": ([], ["cnn"], ["cnn", "heads"], ["everything"]),
    "temperature": (1e-6, 0.5, 2.0, 1e6),
    "impala_width": (1, 2),
    "attention_mask_style": ("clipped_causal", "none"),
}
ENVIRONMENT = {
    "obs_size": ([16, 16], [64, 64], [64, 32], [15, 15]),
    "num_empty_frames": (0, 1, 3),
    "action_type": ("agent", "env"),
    "callbacks": (
        [{"JudgeReset": 5}],
        ["PrevAction", {"JudgeReset": {"time_limit": 20}}],
        [{"Rewards": []}, {"JudgeReset": 20}],
        [{"Task": [{"name": "a", "text": "b"}]}, {"JudgeReset": 20}],
    ),
}
RUNNERS = {
    "num_envs_per_env_runner": (1, 2, 3),
    "rollout_fragment_length": (1, 8, 16, 32),
    "num_env_runners": (0,),
}


def values_of(field: Any, kind: type, nullable: bool) -> Iterator[Any]:
    """Values of an option within its bounds, the ends included."""
    bounds = bounds_of(field)
    yield default_of(field)
    if nullable:
        yield None
    if bounds.choices:
        yield from bounds.choices
    elif kind is bool:
        yield from (True, False)
    elif kind is int:
        yield from (int(max(bounds.least, 0)), int(max(bounds.least, 0)) + 1, 2, 3, MOST)
    elif kind is float:
        yield from (bounds.least, min(bounds.most, 0.5), min(bounds.most, 1.0))


def choices() -> dict[str, list[Any]]:
    """Dotted path below `config` -> what may stand there."""
    found: dict[str, list[Any]] = {}
    for field in fields(PPOOptions):
        if field.name in NOT_TRIED:
            continue
        group = group_of(field)
        keys = [field] if group is None else keys_of(field)
        kinds = types_of(PPOOptions if group is None else group)
        for key in keys:
            if key.name not in NOT_TRIED and bounds_of(key).check is None:
                path = key.name if group is None else f"{field.name}.{key.name}"
                found[path] = list(values_of(key, *kinds[key.name]))
    known = {field.name for field in fields(VPTConfig)}
    found |= {f"model.{name}": list(v) for name, v in MODEL.items() if name in known}
    found |= {f"env_config.{name}": list(v) for name, v in ENVIRONMENT.items()}
    found |= {name: list(v) for name, v in RUNNERS.items()}
    return {path: values for path, values in found.items() if values}


def changed(draw: random.Random) -> dict[str, Any]:
    """The smallest experiment with a few options changed; also returns what was changed."""
    every = choices()
    return {
        path: draw.choice(every[path]) for path in draw.sample(sorted(every), draw.randint(1, 5))
    }


def experiment_with(changes: dict[str, Any]) -> Experiment:
    body = copy.deepcopy(TINY["tiny"])
    for path, value in changes.items():
        place = body["config"]
        *parents, last = path.split(".")
        for name in parents:
            place = place.setdefault(name, {})
        place[{"lambda_": "lambda"}.get(last, last)] = value
    return Experiment(name="tiny", **body)


@pytest.mark.sweep
def test_what_is_accepted_trains(turn):
    accepted = refused = 0
    for seed in range(turn.start or 0, 8 * 16, turn.step or 1):
        changes = changed(random.Random(seed))
        try:
            plan = make_plan(experiment_with(changes))
        except InvalidOptionsError:
            refused += 1
            continue
        accepted += 1
        try:
            algorithm = plan.algorithm(config=plan.example)
            try:
                algorithm.train()
            finally:
                algorithm.stop()
        except Exception as error:
            raise AssertionError(f"{changes} passed the check") from error
    assert accepted and refused
