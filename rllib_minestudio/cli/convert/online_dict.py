"""MineStudio's `online_dict`, key by key: where each option went, or why it went nowhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rllib_minestudio.cli.convert.stand_ins import StandIn, by_name
from rllib_minestudio.cli.convert.values import NotPlainError, yaml_value
from rllib_minestudio.experiments.reading.minestudio_names import RENAMED


@dataclass
class Translation:
    """An experiment in the making.

    Attributes:
        experiment: `run`, `env`, `stop`, `config`, ... of the YAML file.
        left_out: One sentence for each thing that has no translation and matters.
        not_needed: One sentence for each thing that needs none here.
    """

    experiment: dict[str, Any] = field(
        default_factory=lambda: {
            "run": "MineStudioPPO",
            "env": "MineStudioEnv",
            "stop": {},
            "checkpoint_config": {},
            "config": {"env_config": {}},
        }
    )
    left_out: list[str] = field(default_factory=list)
    not_needed: list[str] = field(default_factory=list)

    def set(self, path: str, value: Any) -> None:
        """Set an option by its dotted path below the experiment."""
        *parents, last = path.split(".")
        section = self.experiment
        for name in parents:
            section = section.setdefault(name, {})
        section[last] = value

    def plain(self, name: str, value: Any) -> Any:
        """Return a value as YAML can hold it; one that it cannot is left out and said so."""
        try:
            return yaml_value(value)
        except NotPlainError as error:
            self.left_out.append(f"{name}: {error}")
            return None


Rule = Callable[[Translation, str, Any, Mapping[str, Any]], None]
"""Takes the translation, a key's path, its value, and all options by path."""


def to(target: str) -> Rule:
    """The option exists here, under another name."""

    def rule(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
        translation.set(target, value)

    return rule


def times(target: str, *others: str) -> Rule:
    """The option exists here, but counts for all learners or all parts together."""

    def rule(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
        product = value
        for other in others:
            product *= options.get(other, 1)
        translation.set(target, product)

    return rule


def only(*fine: Any, otherwise: str) -> Rule:
    """There is no option here; what these values mean is what happens."""

    def rule(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
        if value not in fine:
            translation.left_out.append(f"{path}={value!r}: {otherwise}")

    return rule


def unneeded(reason: str) -> Rule:
    """The option configures something that works otherwise here."""

    def rule(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
        translation.not_needed.append(f"{path}: {reason}")

    return rule


def filmed(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
    """Videos are of checkpoints here, so their interval is a multiple of the checkpoints'."""
    save_interval = options.get(_SAVE, value)
    interval = -(-value // save_interval) * save_interval
    translation.set("record_video_interval", interval)
    if interval != value:
        translation.not_needed.append(
            f"{path}={value}: agents are filmed from checkpoints, every {interval} iterations"
        )


def annealed(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
    """MineStudio anneals over all its iterations, whether they are given or not."""
    iterations = options.get(_ITERATIONS)
    if value and iterations is None:
        translation.left_out.append(f"{path}={value!r}: there is no {_ITERATIONS} to anneal over")
    elif value:
        translation.set("config.lr_annealing_iterations", iterations)


def refreshed(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
    """Of MineStudio's two trainers, one reads whether the prior is to be replaced."""
    if value and options.get(_TRAINER) == _PPO_AND_CLONING:
        translation.left_out.append(
            f"{path}={value!r}: PPOBCTrainer replaces the prior when an iteration's reward is the "
            "highest so far; config.prior_update_interval replaces it every so many iterations"
        )
    else:
        translation.not_needed.append(
            f"{path}: MineStudio's PPOTrainer never reads it, its prior stays the initial policy "
            "as here; prior_update_interval would replace it every so many iterations"
        )


def frozen(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
    """Stop VPT's decoder from learning, as the first versions did with a policy's.

    They let only parameters learn that `policy.net.encoders` or `policy.value_head` names.
    """
    if value:
        translation.set("config.model.freeze", list(_VPT_DECODER))
        translation.not_needed.append(
            f"{path}={value!r}: of VPT, the image's encoder and the value head learn; "
            "config.model.freeze names what does not"
        )
    else:
        translation.not_needed.append(f"{path}={value!r}: the whole policy learns")


def autocast(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
    """MineStudio's learner computes in float16 with scaled gradients, its workers in float32."""
    if value:
        translation.set("config.model.precision", "bfloat16")
        translation.not_needed.append(
            f"{path}={value!r}: mixed precision is bfloat16 here, whose gradients need no scaling, "
            "for learners and env runners alike"
        )
    else:
        translation.not_needed.append(f"{path}={value!r}: float32 is what there is by default")


def cloned(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
    """The arguments that PPOBCTrainer has and PPOTrainer has not."""
    if options.get(_TRAINER) != _PPO_AND_CLONING:
        translation.left_out.append(f"{path}: only PPOBCTrainer reads it")
    elif path == _CLONING_COEFFICIENT:
        weight = _cloning_weight(options.get(_OBJECTIVES, ()))
        coefficient = value if weight is None else value * weight
        translation.set("config.behaviour_cloning.coeff", coefficient)
    elif path == _OBJECTIVES and _cloning_weight(value) is not None:
        translation.not_needed.append(
            f"{path}: the loss of behaviour_cloning is BehaviorCloneCallback's, as a mean over "
            "steps instead of their sum"
        )
    elif path == _OBJECTIVES:
        translation.left_out.append(
            f"{path}: only a single BehaviorCloneCallback is translated; other objectives have no "
            "option here"
        )
    else:
        translation.left_out.append(
            f"{path}: MineStudio's data sets are not read beside PPO; set "
            "config.behaviour_cloning.recordings to a folder of episodes (docs/learning.md), "
            "without which nothing is cloned"
        )


def _cloning_weight(objectives: Any) -> float | None:
    """Return the weight of the only objective, BehaviorCloneCallback; None if there are others."""
    objectives = list(objectives or ())
    if not objectives:
        return 1.0
    only_one = objectives[0] if len(objectives) == 1 else None
    if not isinstance(only_one, StandIn) or only_one.name != "BehaviorCloneCallback":
        return None
    return by_name(only_one, ("weight",)).get("weight", 1.0)


_STORE = "fragments live in Ray's object store, which spills to disk by itself"
_PREFETCH = "the learner prefetches by itself"
_RESUME = "MineStudio's training checkpoints cannot be resumed; give its weights as model.weights"
_VIDEOS = "videos of the agent lie in the run's folder, at the game's 20 frames a second"
_PPO_AND_CLONING = "PPOBCTrainer"
_VPT_DECODER = ("net.recurrent_layer.*", "net.lastlayer.*", "net.final_ln.*", "pi_head.*")
"""Patterns on the parameters of VPT that belong to neither its encoder nor its value head."""
_TRAINER = "trainer_name"
_CLONING_COEFFICIENT = "train_config.bc_coef"
_OBJECTIVES = "train_config.callbacks"
_SAVE = "train_config.save_interval"
_ITERATIONS = "train_config.num_iterations"
_WORKERS, _BATCH, _CHUNK = (
    "train_config.num_workers",
    "train_config.batch_size_per_gpu",
    "rollout_config.replay_buffer_config.fragments_per_chunk",
)

RULES: dict[str, Rule] = {
    **{path: to(target) for path, target in RENAMED.items()},
    "trainer_name": only(
        *("PPOTrainer", _PPO_AND_CLONING),
        otherwise="only PPOTrainer and PPOBCTrainer are translated; see behaviour cloning in the "
        "docs",
    ),
    "detach_rollout_manager": unneeded("env runners belong to the run and end with it"),
    "rollout_config.to_send_queue_size": unneeded("env runners wait when the buffer is full"),
    "rollout_config.worker_config.video_fps": unneeded(_VIDEOS),
    "rollout_config.worker_config.video_output_dir": unneeded(_VIDEOS),
    "rollout_config.replay_buffer_config.max_chunks": times(
        "config.replay_buffer.max_fragments", _CHUNK
    ),
    "rollout_config.replay_buffer_config.fragments_per_report": unneeded(
        "every iteration is reported"
    ),
    "rollout_config.replay_buffer_config.database_config": unneeded(_STORE),
    "rollout_config.episode_statistics_config": unneeded("every episode is counted"),
    "train_config.anneal_lr_linearly": annealed,
    "train_config.batches_per_iteration": times("config.fragments_per_iteration", _WORKERS, _BATCH),
    "train_config.gradient_accumulation": times("config.gradient_accumulation", _WORKERS),
    "train_config.clip_vloss": only(False, otherwise="the value loss is not clipped here"),
    "train_config.ppo_policy_coef": only(1.0, otherwise="the policy loss has weight 1 here"),
    "train_config.normalize_advantage_full_batch": only(
        True, otherwise="advantages are normalised over the whole iteration here"
    ),
    "train_config.use_normalized_vf": only(True, otherwise="values are always normalised here"),
    "train_config.num_readers": unneeded(_PREFETCH),
    "train_config.num_cpus_per_reader": unneeded(_PREFETCH),
    "train_config.prefetch_batches": unneeded(_PREFETCH),
    "train_config.record_video_interval": filmed,
    "train_config.enable_ref_update": refreshed,
    "train_config.fix_decoder": frozen,
    "train_config.use_amp": autocast,
    "train_config.bc_coef": cloned,
    "train_config.mine_data": cloned,
    "train_config.callbacks": cloned,
    "train_config.resume": only(None, otherwise=_RESUME),
    "train_config.resume_optimizer": unneeded("--resume always restores the optimizer"),
    "train_config.save_path": unneeded("give the command line's --out"),
}
"""A rule for each key of `online_dict` in MineStudio 1.1.6, and in the versions about it.

`fix_decoder` is an earlier version's, which its documentation still shows; `use_amp` a later one's.
"""

_OBJECTS = ("train_config.mine_data", _OBJECTIVES)
"""Options whose value is no plain one, but an object of MineStudio's."""


def flattened(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """All options by dotted path; a mapping that has a rule of its own is one option."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and path not in RULES:
            flat.update(flattened(value, f"{path}."))
        else:
            flat[path] = value
    return flat


def translate_options(translation: Translation, online_dict: Any) -> None:
    """Translate `online_dict`; keys that MineStudio does not have either are left out.

    Args:
        translation: The experiment in the making.
        online_dict: A mapping, or OmegaConf's of one.
    """
    if OmegaConf.is_config(online_dict):
        try:
            online_dict = OmegaConf.to_container(online_dict, resolve=True)
        except OmegaConfBaseException as error:
            translation.left_out.append(f"online_cfg: {str(error).splitlines()[0]}")
            return
    if isinstance(online_dict, type | StandIn):
        translation.left_out.append(
            "online_dict comes from a module that is not installed here: install it, or copy the "
            "mapping into the file"
        )
        return
    if not isinstance(online_dict, Mapping):
        translation.left_out.append(f"online_dict is {type(online_dict).__name__}, no mapping")
        return
    if not online_dict:
        translation.left_out.append("online_dict is empty")
    options: dict[str, Any] = {}
    for path, value in flattened(online_dict).items():
        try:
            options[path] = value if path in _OBJECTS else yaml_value(value)
        except NotPlainError as error:
            translation.left_out.append(f"{path}: {error}")
    for path, value in options.items():
        if path not in RULES:
            translation.left_out.append(f"{path}={value!r}: unknown key of online_dict")
            continue
        try:
            RULES[path](translation, path, value, options)
        except (TypeError, ValueError, ArithmeticError):  # rules that calculate
            translation.left_out.append(f"{path}={value!r}: the value is none that it can have")
