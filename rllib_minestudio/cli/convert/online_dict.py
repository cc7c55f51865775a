"""Translation of MineStudio's `online_dict`, with a rule for each key, and of the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rllib_minestudio.cli.convert.stand_ins import (
    CONFIG_MODULE,
    MINESTUDIO,
    NotPlainError,
    StandIn,
    by_name,
    yaml_value,
)
from rllib_minestudio.experiments.experiment_file import RENAMED


@dataclass
class Translation:
    """A translated experiment, which is filled step by step.

    Attributes:
        experiment: `run`, `env`, `stop`, `config`, ... of the YAML file.
        left_out: A sentence for each thing that matters but cannot be translated.
        not_needed: A sentence for each thing that needs no translation.
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
        """Return a value as plain data; None if impossible, which is noted in `left_out`."""
        try:
            return yaml_value(value)
        except NotPlainError as error:
            self.left_out.append(f"{name}: {error}")
            return None


Rule = Callable[[Translation, str, Any, Mapping[str, Any]], None]
"""Takes the translation, a key's path, its value, and all options by path."""


def to(target: str) -> Rule:
    """Return the rule for an option that has another name here."""

    def rule(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
        translation.set(target, value)

    return rule


def times(target: str, *others: str) -> Rule:
    """Return the rule for an option that is multiplied here by others, such as the workers."""

    def rule(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
        product = value
        for other in others:
            product *= options.get(other, 1)
        translation.set(target, product)

    return rule


def only(*fine: Any, otherwise: str) -> Rule:
    """Return the rule for an option of which only some values describe what this package does."""

    def rule(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
        if value not in fine:
            translation.left_out.append(f"{path}={value!r}: {otherwise}")

    return rule


def unneeded(reason: str) -> Rule:
    """Return the rule for an option of something that works differently here."""

    def rule(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
        translation.not_needed.append(f"{path}: {reason}")

    return rule


def filmed(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
    """Round the videos' interval up to a multiple of the checkpoints', which are filmed here."""
    save_interval = options.get(_SAVE, value)
    interval = -(-value // save_interval) * save_interval
    translation.set("record_video_interval", interval)
    if interval != value:
        translation.not_needed.append(
            f"{path}={value}: agents are filmed from checkpoints, every {interval} iterations"
        )


def annealed(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
    """Anneal over all iterations, as MineStudio does; that requires their number."""
    iterations = options.get(_ITERATIONS)
    if value and iterations is None:
        translation.left_out.append(f"{path}={value!r}: there is no {_ITERATIONS} to anneal over")
    elif value:
        translation.set("config.lr_annealing_iterations", iterations)


def refreshed(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
    """Report the replacement of the prior, an option that only PPOBCTrainer reads."""
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
    """Freeze VPT's decoder, as early versions of MineStudio did.

    They trained only the parameters of `policy.net.encoders` and `policy.value_head`.
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
    """Replace float16 with scaled gradients, in MineStudio's learner only, by bfloat16."""
    if value:
        translation.set("config.model.precision", "bfloat16")
        translation.not_needed.append(
            f"{path}={value!r}: mixed precision is bfloat16 here, whose gradients need no scaling, "
            "for learners and env runners alike"
        )
    else:
        translation.not_needed.append(f"{path}={value!r}: float32 is the default here")


def cloned(translation: Translation, path: str, value: Any, options: Mapping[str, Any]) -> None:
    """Translate the arguments that PPOBCTrainer has and PPOTrainer lacks."""
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
            f"{path}: MineStudio's data sets are not read in PPO; set "
            "config.behaviour_cloning.recordings to a folder of episodes (docs/learning.md), "
            "without which nothing is cloned"
        )


def _cloning_weight(objectives: Any) -> float | None:
    """Return the weight of the only objective, BehaviorCloneCallback; 1 without objectives."""
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
_VIDEOS = "videos of the agent are in the run's folder, at the game's 20 frames a second"
_PPO_AND_CLONING = "PPOBCTrainer"
_VPT_DECODER = ("net.recurrent_layer.*", "net.lastlayer.*", "net.final_ln.*", "pi_head.*")
"""Patterns of VPT's parameters outside its encoder and value head."""
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
"""A rule for each key of `online_dict` in MineStudio 1.1.6 and neighbouring versions.

`fix_decoder` is from an earlier version, and still in its documentation; `use_amp` is from a later
one.
"""

_OBJECTS = ("train_config.mine_data", _OBJECTIVES)
"""Options whose values are MineStudio's objects, not plain data."""


def flattened(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return all options by dotted path; a mapping that has its own rule is one option."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and path not in RULES:
            flat.update(flattened(value, f"{path}."))
        else:
            flat[path] = value
    return flat


def translate_options(translation: Translation, online_dict: Any) -> None:
    """Translate `online_dict`; keys unknown to MineStudio are listed in `left_out`.

    Args:
        translation: The translation to fill.
        online_dict: A mapping, or an OmegaConf config of one.
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
        translation.left_out.append(f"online_dict is {type(online_dict).__name__}, not a mapping")
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
            translation.left_out.append(f"{path}={value!r}: the value is invalid")


# ----------------------------------------------------- translation of the policy: class and weights
# VPT is translated completely. This package has no network for any other class, so the file names a
# class that the user has yet to write, and is refused until it exists. VPT never replaces it.

_FROM_PRETRAINED = ".from_pretrained"
_PRETRAINED_PARAMETERS = ("pretrained_model_name_or_path",)
_VPT_FILES = ("model_path", "weights_path")
_VPT_LOADERS = {
    "load_vpt_policy": _VPT_FILES,
    "load_openai_policy": _VPT_FILES,  # its former name
    "VPTPolicy.from_pretrained": _PRETRAINED_PARAMETERS,
}
_HERE = __name__.partition(".")[0]
"""This package; its policies keep in `source` what they were loaded from."""
_PLACEHOLDER = "my_package.my_module"


class _Other(NamedTuple):
    """A policy of MineStudio's other than VPT."""

    title: str
    """Its name in its paper."""

    reads: str
    """Its inputs besides frames, and how to provide them here."""

    default: str | None
    """The weights that its loader loads by default."""


_OTHERS = {
    "SteveOnePolicy": _Other(
        "STEVE-1",
        "Besides the image it reads its goal, which MineStudio passes as `condition` (a text or a "
        "video, and cond_scale): the callback Task puts the task's text into observations as "
        "task_text, for the policy to embed; make cond_scale an option of config.model",
        None,
    ),
    "GrootPolicy": _Other(
        "GROOT",
        "Besides the image it reads a video of the task, which MineStudio passes as "
        "`ref_video_path`: make that path an option of config.model, for the policy to embed",
        "CraftJarvis/MineStudio_GROOT.18w_EMA",
    ),
    "RocketPolicy": _Other(
        "ROCKET-1",
        "Besides the image it reads which object to deal with and how, `segmentation` with "
        "obj_mask and obj_id: a callback of your own has to add both to observations",
        "CraftJarvis/MineStudio_ROCKET-1.12w_EMA",
    ),
}
_OTHER_LOADERS = {
    "load_steve_one_policy": "SteveOnePolicy",
    "load_groot_policy": "GrootPolicy",
    "load_rocket_policy": "RocketPolicy",
}
"""Loader -> class; each loader takes `ckpt_path`."""


def translate_policy(translation: Translation, policy: Any) -> None:
    """Translate the policy that `policy_generator` returned: its class and its weights."""
    kind = policy if isinstance(policy, type) else type(policy)
    name, module = kind.__qualname__, kind.__module__
    if module == "builtins":
        translation.left_out.append(
            f"policy_generator() returns a {name}, which is not a policy: set config.module_class "
            "and config.model (docs/policies.md)"
        )
    elif module.partition(".")[0] == _HERE and getattr(policy, "source", None) is not None:
        translation.set("config.model.weights", translation.plain(name, policy.source))
        translation.set("config.prior", "initial")
    elif not _is_minestudios(kind):
        _translate_own(translation, policy, kind)
    elif name in ("VPTPolicy", *_VPT_LOADERS):
        _translate_vpt(translation, policy, name)
    else:
        name = name.removesuffix(_FROM_PRETRAINED)
        name = _OTHER_LOADERS.get(name, name)
        known = _OTHERS.get(name)
        title = f"MineStudio's {name}" + (f" ({known.title})" if known else "")
        _leave_out(translation, policy, f"{_PLACEHOLDER}.{_to_write(name)}", title, known)


def _translate_vpt(translation: Translation, policy: Any, called: str) -> None:
    """Set the weights, from which the sizes are derived when they are loaded."""
    parameters = _VPT_LOADERS.get(called, ())
    arguments = by_name(policy, parameters) if isinstance(policy, StandIn) else {}
    weights = [arguments[name] for name in parameters if arguments.get(name) is not None]
    if not weights:
        translation.left_out.append(
            f"policy_generator() returns {called}; translated are load_vpt_policy and "
            "VPTPolicy.from_pretrained with weights. Set config.model.preset, or "
            "config.model.weights"
        )
        return
    for name in [name for name in arguments if name not in parameters]:
        translation.left_out.append(f"{called}({name}=...): not translated")
    places = [translation.plain(called, place) for place in weights]
    translation.set("config.model.weights", places[0] if len(places) == 1 else places)
    translation.set("config.prior", "initial")


def _translate_own(translation: Translation, policy: Any, kind: type) -> None:
    """Report a class that is not MineStudio's: its module and the class it is derived from."""
    name = kind.__qualname__.removesuffix(_FROM_PRETRAINED)
    is_in_config = kind.__module__ == CONFIG_MODULE
    title = f"{name} of the config file" if is_in_config else f"{kind.__module__}.{name}"
    base = next((base.__qualname__ for base in kind.__mro__ if _is_minestudios(base)), None)
    if base is not None:
        title += f", derived from MineStudio's {base}"
    module = _PLACEHOLDER if is_in_config or base is None else kind.__module__
    _leave_out(translation, policy, f"{module}.{_to_write(name)}", title, None)


def _leave_out(
    translation: Translation, policy: Any, path: str, title: str, known: _Other | None
) -> None:
    """Name a class that the user has yet to write, and report what it must do.

    Args:
        translation: The translation to fill.
        policy: What `policy_generator` returned.
        path: Import path of the class to write.
        title: Name of the original class.
        known: What is known about the original class.
    """
    translation.set("config.module_class", path)
    weights = _weights_of(policy) or (known.default if known else None)
    its_weights = "Its weights are"
    if weights is not None:
        translation.set("config.model.weights", weights)
        translation.set("config.prior", "initial")
        its_weights = f"Its weights, {weights}, are"
    sentences = [
        f"policy_generator() returns {title}, and this package has no network of that class",
        "Write a RecurrentRLModule that wraps it (docs/policies.md) and name that, as in "
        f"config.module_class: {path}; no run starts before it exists",
        *([known.reads] if known else []),
        f"{its_weights} config.model.weights; read_weights of the new class gives their tensors "
        "the names that its network has",
    ]
    translation.left_out.append(". ".join(sentences))


def _weights_of(policy: Any) -> str | None:
    """Return the file or id that was passed to a loader; None if there was none."""
    if not isinstance(policy, StandIn):
        return None
    if policy.name.endswith(_FROM_PRETRAINED):
        parameters = _PRETRAINED_PARAMETERS
    elif policy.is_minestudios and policy.name in _OTHER_LOADERS:
        parameters = ("ckpt_path",)
    else:
        return None
    place = by_name(policy, parameters).get(parameters[0])
    return None if place is None else str(place)


def _to_write(name: str) -> str:
    """Return a name for the class that is to wrap another, in this package's style."""
    return f"{name.rpartition('.')[2].removesuffix('Policy') or name}RLModule"


def _is_minestudios(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == MINESTUDIO
