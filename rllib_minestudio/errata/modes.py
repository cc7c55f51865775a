"""In which modes the errata acted: each function looks at a stage of a run, and says why.

They describe the training loop as it was before the erratum was mended, and so never change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from rllib_minestudio.errata.stage import Finding, Stage

OPTIMIZER_OPTIONS = ("weight_decay", "adam_eps", "lr_factors")
"""What AdamW keeps beside its moments."""

_OUR_ENVS = ("MineStudio", "MineStudioEnv", "rllib_minestudio.env.minestudio_env.MineStudioEnv")
"""Names of the environment whose embedded engine `env_pool.mode: auto` runs inline."""

_GAPS = ("evicted", "dropped_stale", "broken", "lost")
"""Counts of the replay buffer's fragments that left without having been trained on, if none is
ever reused."""


# ---------------------------------------------------------------- one function per erratum


def bootstrap_values_aged(stage: Stage) -> Finding:
    """Whether rows were evaluated anew whose bootstrap values were not."""
    config = stage.config
    if config.get("reuse_stored_values"):
        return Finding(False, "reuse_stored_values is true: no value was computed anew")
    if _in_warmup(stage):
        why: str | None = _warmup(config)
    else:
        why = _stale_experience(config) or _recomputed(stage)
    if why is None:
        return Finding(False, f"{_no_warmup(stage)}; {_nothing_waits(config)}")
    return Finding(True, f"{why}; {_time_limit(config)}")


def prior_memory_lost(stage: Stage) -> Finding:
    """Whether fragments reached the prior out of order, or not all of them did."""
    config = stage.config
    if config["prior"] is None:
        return Finding(False, "prior is null")
    if not config["carry_prior_state"]:
        return Finding(False, "carry_prior_state is false: no memory was to be carried")
    why = _out_of_order(config) or _gaps(stage)
    if why is None:
        runners = config["num_env_runners"]
        return Finding(
            False, f"num_env_runners is {runners}: all that was played was trained on, in order"
        )
    if not config["kl_coeff"] and not _in_warmup(stage):
        why += "; kl_coeff is 0, so that only the metric kl_to_prior is wrong"
    return Finding(True, why)


def remainder_weights(stage: Stage) -> Finding:
    """Whether some fragments of an iteration weighed more than others."""
    config = stage.config
    rows, minibatch, group = _portions(config)
    steps = list(_steps(rows, minibatch, group))
    averaged = [len(step) * size for step in steps for size in step]  # the weight is 1 in so many
    why = (
        f"fragments_per_iteration={config['fragments_per_iteration']}, fragments_per_minibatch="
        f"{minibatch} and gradient_accumulation={config['gradient_accumulation']}"
    )
    ratio = max(averaged) / min(averaged)
    if ratio == 1:
        return Finding(False, f"{why} leave no remainder")
    return Finding(
        True,
        f"{why} make {len(steps)} optimizer step(s) per iteration, in which some fragments "
        f"weighed {ratio:.3g} times as much as others",
    )


def entropy_in_warmup(stage: Stage) -> Finding:
    """Whether the entropy bonus had a policy to act on in the warmup."""
    config = stage.config
    if not config["entropy_coeff"]:
        return Finding(False, "entropy_coeff is 0")
    if not _in_warmup(stage):
        return Finding(False, _no_warmup(stage))
    if config.get("vf_warmup_head_only"):
        return Finding(False, "vf_warmup_head_only is true: the policy did not learn meanwhile")
    return Finding(True, f"entropy_coeff is {config['entropy_coeff']} and {_warmup(config)}")


def warmup_drop(stage: Stage) -> Finding:
    """Whether fragments were waiting when the warmup ended, and had become too stale."""
    config = stage.config
    warmup = config["vf_warmup_iterations"]
    staleness = config["replay_buffer"]["max_staleness"]
    if not warmup or not stage.start <= warmup < stage.iteration:
        return Finding(False, f"{_warmup(config)}: none came to its end")
    if warmup < staleness:
        return Finding(
            False,
            f"{_warmup(config)}, not more than replay_buffer.max_staleness={staleness} allows for",
        )
    why = _stale_experience(config)
    if why is None:
        return Finding(False, _nothing_waits(config))
    if _since_start(stage) and stage.metric("replay_buffer", "dropped_stale") == 0:
        return Finding(False, "the metric replay_buffer/dropped_stale is 0")
    return Finding(True, f"{_warmup(config)}, and {why}")


def optimizer_options_kept(stage: Stage) -> Finding:
    """Whether the optimizer was restored from a record with other options."""
    changed = []
    if stage.before is not None:
        then, now = stage.before.config, stage.config
        changed = [
            f"{name} was {then[name]!r} in {stage.before.where} and is {now[name]!r}"
            for name in OPTIMIZER_OPTIONS
            if name in then and then[name] != now[name]
        ]
    if changed:
        return Finding(True, "; ".join(changed))
    kept = ", ".join(f"{name}={stage.config[name]!r}" for name in OPTIMIZER_OPTIONS)
    return Finding(False, f"{kept} in all records")


# ---------------------------------------------------------------- the modes


def _in_warmup(stage: Stage) -> bool:
    return stage.config["vf_warmup_iterations"] > stage.start


def _warmup(config: Mapping[str, Any]) -> str:
    return f"vf_warmup_iterations is {config['vf_warmup_iterations']}"


def _no_warmup(stage: Stage) -> str:
    over = ", which was over" if stage.config["vf_warmup_iterations"] else ""
    return f"{_warmup(stage.config)}{over}"


def _nothing_waits(config: Mapping[str, Any]) -> str:
    buffer = config["replay_buffer"]
    return (
        f"num_env_runners={config['num_env_runners']}, replay_buffer.max_reuse="
        f"{buffer['max_reuse']} and max_staleness={buffer['max_staleness']} let no fragment wait "
        "while the weights moved on"
    )


def _time_limit(config: Mapping[str, Any]) -> str:
    """Say whether episodes are known to be truncated."""
    limits = sorted(set(_values_of("time_limit", config.get("env_config"))))
    if limits:
        return f"episodes are cut by time_limit={', '.join(map(str, limits))}"
    return "it matters if episodes are cut by a time limit; the config names none"


def _values_of(name: str, tree: Any) -> Iterator[Any]:
    if isinstance(tree, Mapping):
        if name in tree:
            yield tree[name]
        tree = list(tree.values())
    if isinstance(tree, list):
        for child in tree:
            yield from _values_of(name, child)


def _stale_experience(config: Mapping[str, Any]) -> str | None:
    """Why fragments waited for the learner while its weights moved on; None if they did not."""
    runners, buffer = config["num_env_runners"], config["replay_buffer"]
    if buffer["max_staleness"] == 0:
        return None
    if runners:
        staleness = buffer["max_staleness"]
        return f"num_env_runners is {runners} with replay_buffer.max_staleness={staleness}"
    if buffer["max_reuse"] > 1:
        return f"replay_buffer.max_reuse is {buffer['max_reuse']}"
    if not _in_step(config):
        return "environments in processes of their own completed fragments at different times"
    return _left_over(config)


def _in_step(config: Mapping[str, Any]) -> bool:
    """Whether all environments of this process complete their fragments at the same time."""
    mode, engine = config["env_pool"]["mode"], (config.get("env_config") or {}).get("engine")
    embedded = config.get("env") in _OUR_ENVS and engine in (None, "voxel")
    return (
        mode == "inline"
        or (mode == "auto" and embedded)
        or config["num_envs_per_env_runner"] == 1
        or config["replay_buffer"]["max_staleness"] == 0  # then they wait for each other
    )


def _left_over(config: Mapping[str, Any]) -> str | None:
    """Why an iteration did not train on all that was played; None if it did."""
    chunks, envs = _chunks(config), config["num_envs_per_env_runner"]
    if chunks % envs == 0:
        return None
    joined = config["replay_buffer"]["fragments_per_chunk"]
    return (
        f"fragments_per_iteration={config['fragments_per_iteration']} is not a multiple of "
        f"num_envs_per_env_runner={envs}"
        + (f" times fragments_per_chunk={joined}" if joined > 1 else "")
        + ": fragments were left over"
    )


def _chunks(config: Mapping[str, Any]) -> int:
    return config["fragments_per_iteration"] // config["replay_buffer"]["fragments_per_chunk"]


def _out_of_order(config: Mapping[str, Any]) -> str | None:
    """Why an environment's fragments reached the learner in another order; None if they did not."""
    runners, buffer = config["num_env_runners"], config["replay_buffer"]
    staleness, reuse, joined = (
        buffer[name] for name in ("max_staleness", "max_reuse", "fragments_per_chunk")
    )
    if runners and staleness:
        return f"num_env_runners is {runners}: fragments were sampled at random"
    if joined > 1 and (runners > 1 or not _in_step(config)):
        return f"replay_buffer.fragments_per_chunk is {joined}: chunks were completed unevenly"
    if reuse > 1 and not _in_step(config):
        return f"replay_buffer.max_reuse is {reuse}: fragments aged before they were sampled"
    chunks, envs = _chunks(config), config["num_envs_per_env_runner"]
    drained = (  # each round of fragments was sampled before the next one was played
        not runners
        and _in_step(config)
        and chunks < envs
        and (envs % chunks == 0 or reuse > 1)
        and staleness >= math.ceil(envs / chunks) - 1
    )
    return None if drained else _left_over(config)


def _portions(config: Mapping[str, Any]) -> tuple[int, int, int]:
    """Rows of an iteration and of a minibatch, and minibatches per step, of one learner."""
    learners = max(1, config["num_learners"])
    return (
        _chunks(config) // learners,
        config["fragments_per_minibatch"],
        config["gradient_accumulation"] // learners,
    )


def _steps(rows: int, minibatch: int, group: int) -> Iterator[list[int]]:
    """Yield the sizes of the minibatches of each optimizer step, in rows."""
    sizes = [min(minibatch, rows - i) for i in range(0, rows, minibatch)]
    for i in range(0, len(sizes), group):
        yield sizes[i : i + group]


# ---------------------------------------------------------------- what metrics tell


def _recomputed(stage: Stage) -> str | None:
    count = stage.metric("learners", "default_policy", "recomputed_fragments")
    return f"the metric recomputed_fragments is {count:g}" if count else None


def _gaps(stage: Stage) -> str | None:
    """Which fragments were never trained on; None if that is not known of any."""
    if stage.config["replay_buffer"]["max_reuse"] > 1:
        return None  # they may have been trained on before
    counts = {name: stage.metric("replay_buffer", name) for name in _GAPS}
    seen = [f"replay_buffer/{name} is {count:g}" for name, count in counts.items() if count]
    return f"fragments were never trained on: {', '.join(seen)}" if seen else None


def _since_start(stage: Stage) -> bool:
    """Whether the counts of the last result are those since the run's first iteration."""
    return stage.metric("iterations_since_restore") == stage.iteration
