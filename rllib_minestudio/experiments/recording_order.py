"""From a request of `rllib record` to the order for demonstrations of an experiment's task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms.environments import (
    is_embedded,
    known_spaces,
    looks_of_built,
    resolve_env,
    suited_env_options,
    tell_other_looks,
)
from rllib_minestudio.demonstrations.recording import RecordingOrder
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.adapter import RENDER_MODE
from rllib_minestudio.env.agents.hunter import BODIES
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.env.recorder import NO_GAMES_TO_SAVE, RecorderOptions, why_unrecordable
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.evaluation.inference import Policy
from rllib_minestudio.evaluation.policy_loading import load_module, weights_digest
from rllib_minestudio.experiments.evaluate_checkpoint import NOVICE_STEPS, RecordingRequest
from rllib_minestudio.experiments.experiment_file import Experiment, load_experiments
from rllib_minestudio.experiments.played_policy import of_environment, of_model, task_of
from rllib_minestudio.experiments.ray_session import compile_kernels
from rllib_minestudio.foundation.console import stderr
from rllib_minestudio.foundation.names import RANDOM, TOOLMAKERS
from rllib_minestudio.foundation.options import broken_rule


def recording_order(request: RecordingRequest) -> RecordingOrder:
    """Read the task from its file and validate its environment's options.

    Raises:
        InvalidOptionsError: The file contains several experiments, or an option is wrong or belongs
            to another agent.
        ExperimentFileError: The file is missing or not readable.
        CheckpointMismatchError: There is no such novice, or it cannot be loaded.
    """
    agent, task = request.agent, request.task
    if request.prey and agent in (*TOOLMAKERS, RANDOM):
        rule = f"is for hunters only, not the agent {agent!r}"
        raise InvalidOptionsError(broken_rule("--prey", list(request.prey), rule))
    changes = [*of_environment(request.overrides), *of_model(request.overrides)]
    experiments = load_experiments(task, changes)
    if len(experiments) != 1:
        names = ", ".join(experiment.name for experiment in experiments)
        raise InvalidOptionsError(f"{task} holds several experiments: {names}.")
    (experiment,) = experiments
    env, env_config, model = task_of(experiment)
    options = _suited_to_policy(experiment, env, env_config, model)
    make_env = resolve_env(env)
    form = {"format": request.format, "snapshot_interval": request.snapshot_interval}
    RecorderOptions.from_mapping({"folder": str(request.out), **form})  # raises an error if wrong
    if request.snapshot_interval and not is_embedded(env, options):
        raise InvalidOptionsError(NO_GAMES_TO_SAVE)
    if make_env is MineStudioEnv:
        MineStudioEnv.check_options(options)
        if options.get("engine", VOXEL) == VOXEL:
            compile_kernels()
    elif spaces := known_spaces(env, options):
        problem = why_unrecordable(**spaces, renders=options.get(RENDER_MODE) is not None)
        if problem is not None:
            raise InvalidOptionsError(f"{experiment.name}: {problem}")
    novice_steps = request.novice_steps
    if request.novice is not None and novice_steps is None:
        novice_steps = NOVICE_STEPS
    order = RecordingOrder(
        task=experiment.name,
        make_env=make_env,
        env_config=options,
        agent=agent,
        prey=request.prey or tuple(BODIES),
        make=request.make,
        seed=request.seed,
        format=request.format,
        crf=request.crf,
        snapshot_interval=request.snapshot_interval,
        novice_steps=novice_steps,
    )
    return order if request.novice is None else _with_novice(order, request.novice, request.trust)


def _with_novice(order: RecordingOrder, novice: str, trust: bool) -> RecordingOrder:
    """Return the order with a policy that plays the beginning of every episode.

    Raises:
        CheckpointMismatchError: There is no such policy, or it cannot be loaded.
        InvalidOptionsError: It does not fit the environment.
    """
    checkpoint = checkpoints.open(novice, verified=True, trust=trust)
    with closing(order.make_env(order.env_config)) as env:
        tell_other_looks(checkpoint.name, checkpoint.looks, looks_of_built(env))
        weights = weights_digest(load_module(checkpoint, env).get_state())
    return replace(
        order,
        novice=novice,
        novice_weights=weights,
        # `latest` may change.
        load_novice=partial(load_novice, checkpoint.path, trust=trust),
    )


def load_novice(checkpoint: Path, env: gym.Env, *, trust: bool = False) -> Callable[[int], Policy]:
    """Load a policy for one of several processes; see `RecordingOrder.load_novice`."""
    torch.set_num_threads(1)
    module = load_module(checkpoint, env, trust=trust)
    return lambda seed: Policy(module, seed=seed)


def _suited_to_policy(
    experiment: Experiment, env: Any, env_config: dict[str, Any], model: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the environment's options as the experiment's training would set them.

    Weights that decide them may not exist yet, because they are only trained on these recordings:
    then a preset decides them, or a warning says that nothing does.
    """
    if experiment.algorithm_config is not None:
        return env_config
    options = {**experiment.config, "env_config": env_config}
    try:
        return suited_env_options(env, {**options, "model": model})
    except CheckpointMismatchError as error:
        if model.get("preset") is not None:
            return suited_env_options(env, {**options, "model": {**model, "weights": None}})
        stderr.print(
            f"warning: {error} Frames are recorded as env_config says; these weights may need "
            "others.",
            style="yellow",
            markup=False,
        )
        return env_config
