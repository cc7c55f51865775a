"""cow_vpt.yaml on the device: steps a second, who waits for whom, and a checkpoint for the CPU.

Env runners and the learner share the device. Without one, nano is trained on the processor, for
seconds.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
import torch
from training import DEFAULT_FILE, read_config

from gpu_stages.rows import Row, Setting
from rllib_minestudio.algorithms import MineStudioPPO, MineStudioPPOConfig

GOAL = 0.9
"""The least share of the time in which the learner should be busy."""

WARMUP = 3
"""Iterations that fill the buffer; they do not count where there are more."""

SHORT_S = 8.0
RESERVE_S = 12.0
"""Of a stage's time, to end the iteration under way and to save."""

LARGE_RUNNER_GIB, LARGE_LEARNER_GIB = 4.0, 12.0
"""What 1x takes of the device in minibatches of four fragments. Twelve runners whose prior went
through eight at once left an H100 no room for the learner."""

CHECKPOINT = "cow_nano_checkpoint"
"""In the folder of the results."""

MOST_RUNNERS = 12
OTHER_CORES = 3
"""For the learner, the thread that prepares its minibatches, and Ray."""


def nano(setting: Setting) -> Iterator[Row]:
    """Train nano until the time is over, and save."""
    config = read_config(DEFAULT_FILE)
    if setting.device == "cuda":
        cores = len(os.sched_getaffinity(0))
        runners, envs = max(1, min(MOST_RUNNERS, cores - OTHER_CORES)), 16
        _share_the_device(config, runners)
    else:
        runners, envs = 1, 4
    config.env_runners(num_env_runners=runners, num_envs_per_env_runner=envs)
    fragments = max(4, runners * envs // 2)
    config.training(
        decorrelation_steps=0 if setting.short else 100,
        fragments_per_iteration=fragments,
        fragments_per_minibatch=min(8, fragments),
        replay_buffer={"max_fragments": 4 * fragments, "max_staleness": 2},
    )
    yield from _train(config, setting, checkpoint=CHECKPOINT)


def large(setting: Setting) -> Iterator[Row]:
    """Train 1x, which sees pictures of 128 x 128, until the time is over."""
    config = read_config(DEFAULT_FILE)
    config.environment(env_config={**config.env_config, "obs_size": [128, 128]})
    cores = len(os.sched_getaffinity(0))
    memory = torch.cuda.get_device_properties(0).total_memory / 2**30
    fitting = int((memory - LARGE_LEARNER_GIB) / LARGE_RUNNER_GIB)
    runners, envs = max(1, min(MOST_RUNNERS, cores - OTHER_CORES, fitting)), 16
    _share_the_device(config, runners)
    config.env_runners(num_env_runners=runners, num_envs_per_env_runner=envs)
    fragments = runners * envs // 2
    config.training(
        model={"preset": "1x", "precision": "bfloat16"},
        lr=5e-5,
        decorrelation_steps=0 if setting.short else 100,
        fragments_per_iteration=fragments,
        fragments_per_minibatch=4,
        gradient_accumulation=2,
        replay_buffer={"max_fragments": 4 * fragments, "max_staleness": 2},
    )
    yield from _train(config, setting)


def resumed_on_cpu(setting: Setting) -> Iterator[Row]:
    """Restore nano's checkpoint in a process that sees no device, and train an iteration more."""
    config = read_config(DEFAULT_FILE)
    config.env_runners(num_envs_per_env_runner=4)
    config.training(decorrelation_steps=0, fragments_per_iteration=4, fragments_per_minibatch=4)
    with _ray(), _built(config) as algorithm:
        algorithm.restore_from_path(str((setting.folder / CHECKPOINT).resolve()))
        restored = algorithm.iteration
        yield Row("iteration of the checkpoint", restored, goal="above 0", met=restored > 0)
        algorithm.train()
        policy = algorithm.learner_group._learner.policy
        yield Row(
            "trained one iteration more on",
            policy.device.type,
            goal="cpu",
            met=policy.device.type == "cpu",
        )


def _share_the_device(config: MineStudioPPOConfig, runners: int) -> None:
    """Let Ray place the learner and all env runners on one device; shares are bookkeeping only."""
    config.learners(num_gpus_per_learner=0.4)
    config.env_runners(num_gpus_per_env_runner=600 // runners / 1000)  # rounded down


def _train(
    config: MineStudioPPOConfig, setting: Setting, checkpoint: str | None = None
) -> Iterator[Row]:
    """Rows of all iterations so far, after each of them."""
    with _ray(), _built(config) as algorithm:
        ends_at = setting.ends_at - RESERVE_S
        if setting.short:
            ends_at = min(ends_at, time.monotonic() + SHORT_S)
        results: list[dict[str, Any]] = []
        while not results or time.monotonic() < ends_at:
            results.append(algorithm.train())
            yield from _rows(config, results)
        if setting.device == "cuda":
            peak = torch.cuda.max_memory_allocated() / 2**20
            yield Row("learner's peak on the device", peak, "MiB")
        if checkpoint is not None:
            shutil.rmtree(setting.folder / checkpoint, ignore_errors=True)
            algorithm.save_to_path(str((setting.folder / checkpoint).resolve()))
            yield Row("checkpoint", checkpoint)


def _rows(config: MineStudioPPOConfig, results: list[dict[str, Any]]) -> Iterator[Row]:
    counted = results[WARMUP:] or results
    seconds = sum(result["time_this_iter_s"] for result in counted)
    steps = sum(result["env_runners"]["num_env_steps_sampled"] for result in counted)

    def share(part: str) -> float:
        """Of the time in which a part was busy."""
        busy = (r["busy_fraction"][part] * r["time_this_iter_s"] for r in counted)
        return float(sum(busy) / seconds)

    learner, runners = share("learner"), share("env_runners")
    envs = f"{config.num_env_runners} x {config.num_envs_per_env_runner} environments"
    yield Row("env runners", envs)
    yield Row("iterations", len(results))
    yield Row("environment steps", float(steps / seconds), "steps/s")
    yield Row("learner busy", learner, goal=f"at least {GOAL:.0%}", met=learner >= GOAL)
    yield Row("env runners busy", runners)
    waiting, other = ("learner", "env runners") if learner < runners else ("env runners", "learner")
    yield Row("who waits for whom", f"the {waiting} for the {other}")
    rollouts = sum(result["env_runners"]["seconds"]["sampling"] for result in counted)
    for stage, name in (
        ("inference", "the network"),
        ("waiting_for_envs", "environments"),
        ("prior", "the prior"),
    ):
        spent = sum(result["env_runners"]["seconds"].get(stage, 0.0) for result in counted)
        if rollouts:
            yield Row(f"share of a rollout in {name}", float(spent / rollouts))


@contextmanager
def _ray() -> Iterator[None]:
    """Ray on this machine; quiet."""
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=2**30,
        _node_ip_address="127.0.0.1",
    )
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _built(config: MineStudioPPOConfig) -> Iterator[MineStudioPPO]:
    """The algorithm, which is stopped in the end."""
    algorithm = config.build_algo()
    try:
        yield algorithm
    finally:
        algorithm.stop()
