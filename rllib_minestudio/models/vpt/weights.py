"""VPT's weights: loading them strictly, the sizes they imply, and writing them in published forms.

State dict names are those of MineStudio and OpenAI (`net.*`, `pi_head.*`, `value_head.*`);
`network.py` creates its layers under the same names, so no translation is needed.
`checkpoints/checkpoint.py` lists the forms in which weights may come.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from rllib_minestudio import checkpoints
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.checkpoints.checkpoint import NETWORK
from rllib_minestudio.checkpoints.lookup import CONFIG_FILE, TENSORS
from rllib_minestudio.checkpoints.tensor_files import digests_of
from rllib_minestudio.errors import CheckpointError, CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.foundation.files import whole_file, write_whole
from rllib_minestudio.foundation.names import NUM_BUTTONS
from rllib_minestudio.foundation.options import broken_rule, is_number, shown
from rllib_minestudio.models.strict_loading import compare, load_strictly, mismatches
from rllib_minestudio.models.tempering import at_temperature
from rllib_minestudio.models.vpt.attention import POSITION_BASES
from rllib_minestudio.models.vpt.config import (
    COMPUTE_FIELDS,
    PRESETS,
    VPTConfig,
    as_tuple,
    preset_and_fields,
    size_in_words,
)
from rllib_minestudio.models.vpt.network import FactoredHead, VPTNetwork

PARTS = ("net.", "pi_head.", "value_head.")
"""Prefixes of a policy's tensors. Other names belong to heads that were trained along with it."""


def load_weights(network: nn.Module, checkpoint: Checkpoint) -> None:
    """Load a checkpoint of any known form into `network`, a `VPTNetwork`, strictly.

    Raises:
        CheckpointMismatchError: The checkpoint is unreadable, damaged, or holds another network.
    """
    tensors = policy_part(checkpoint.tensors())
    load_strictly(network, tensors, source=f"weights {checkpoint.name!r}")


def load_network(checkpoint: Checkpoint) -> VPTNetwork:
    """Build the network that a checkpoint holds, with its weights.

    Names and shapes are compared first: a description can claim any size.

    Raises:
        CheckpointMismatchError: The checkpoint is unreadable, damaged, or describes another
            network than it holds.
    """
    config = config_from_checkpoint(checkpoint)
    for problem in weights_problems(config, checkpoint):
        raise CheckpointMismatchError(problem)
    network = VPTNetwork(config)
    load_weights(network, checkpoint)
    return network


def config_from_checkpoint(checkpoint: Checkpoint) -> VPTConfig:
    """Return the size and temperature of the network that a checkpoint holds.

    A bare state dict does not tell everything; see `config_from_shapes`.

    Raises:
        CheckpointMismatchError: The checkpoint is unreadable, or not of a VPT network.
    """
    try:
        if checkpoint.other_policy is not None:
            name, _ = checkpoint.other_policy
            raise CheckpointMismatchError(
                f"it is a policy of the class {name}, not of VPT: set module_class to {name!r}"
            )
        if checkpoint.arguments is not None:
            return config_from_arguments(checkpoint.arguments, checkpoint.temperature)
        if checkpoint.options is not None:
            return _config_of_own(checkpoint.options, checkpoint)
        return _inferred(checkpoint)
    except (CheckpointMismatchError, InvalidOptionsError, TypeError) as error:
        raise CheckpointMismatchError(f"weights {checkpoint.name!r}: {error}") from error


def is_described(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint states its network's options; otherwise its tensors tell the sizes."""
    return checkpoint.arguments is not None or checkpoint.options is not None


def config_from_options(options: Mapping[str, Any], other_names: Sequence[str] = ()) -> VPTConfig:
    """Do as `VPTConfig.from_options`, except that `weights` decide the sizes where there are any.

    What the weights do not say, such as the temperature of a bare state dict, comes from a preset
    of their size.

    Args:
        options: `{"weights": ..., "preset": ..., field: value, ...}`; `weights` may be an open
            checkpoint.
        other_names: Further names that the caller accepts; they may be among the options.

    Raises:
        InvalidOptionsError: An option is unknown or invalid, or asks for other sizes than those of
            the weights.
        CheckpointMismatchError: The weights cannot be read.
    """
    sizes = {name: value for name, value in options.items() if name not in other_names}
    preset, fields = preset_and_fields(sizes, other_names)
    weights = options.get("weights")
    # Where every size is given, as in checkpoints, the weights may be gone by now.
    if weights is None or fields.keys() == {field.name for field in dataclasses.fields(VPTConfig)}:
        return VPTConfig.from_options(sizes, other_names)
    checkpoint = checkpoints.open(weights)
    own = config_from_checkpoint(checkpoint)
    asked = dataclasses.replace(own if preset is None else PRESETS[preset], **fields)
    problems = _contradictions(asked, own, preset, fields, checkpoint)
    if problems:
        raise InvalidOptionsError(problems)
    return dataclasses.replace(own, **fields) if is_described(checkpoint) else asked


def _contradictions(
    asked: VPTConfig,
    own: VPTConfig,
    preset: str | None,
    fields: Mapping[str, Any],
    checkpoint: Checkpoint,
) -> list[str]:
    """Return a sentence for each option that asks for other tensors than those of the weights."""
    found, of_weights = _tensor_sizes(asked), _tensor_sizes(own)
    if not is_described(checkpoint):  # then the image was only assumed to be square
        del found["img_shape",]
    differing = [names for names, size in found.items() if size != of_weights[names]]
    problems = [
        f"model.{name} is {shown(fields[name])}, but the weights {checkpoint.name!r} have "
        f"{shown(getattr(own, name))}, and decide the sizes: leave {name} out."
        for names in differing
        for name in names
        if name in fields and getattr(own, name) != getattr(asked, name)
    ]
    if any(fields.keys().isdisjoint(names) for names in differing):
        problems.append(
            f"model.preset is {preset!r}, but the weights {checkpoint.name!r} are of another size "
            f"({size_in_words(own)}), and decide it: leave preset out, or give "
            "--set model.preset=null."
        )
    return problems


def _tensor_sizes(config: VPTConfig) -> dict[tuple[str, ...], Any]:
    """Return what the shapes of tensors tell of a network, by the options that decide it."""
    shrink = 2 ** len(config.impala_chans)
    height, width, _ = config.img_shape
    return {
        ("img_shape",): (height // shrink) * (width // shrink),
        ("impala_width", "impala_chans"): config.channels,
        ("attention_memory_size", "timesteps"): config.memory_length,
        **{
            (name,): getattr(config, name)
            for name in (
                *("hidsize", "attention_heads", "n_recurrence_layers"),
                *("pointwise_ratio", "action_head"),
            )
        },
    }


def weights_problems(config: VPTConfig, checkpoint: Checkpoint) -> list[str]:
    """Report why a checkpoint does not fit a network, by names and shapes only.

    Returns:
        One message per problem; an empty list if `load_weights` would accept the checkpoint, unless
        its values are damaged, which is not checked.
    """
    try:
        comparison = compare(blank_network(config).state_dict(), policy_part(checkpoint.tensors()))
    except CheckpointMismatchError as error:
        return [str(error)]
    problems = mismatches(comparison, f"weights {checkpoint.name!r}")
    image = (checkpoint.arguments or {}).get("img_shape")
    if image is not None and not is_same(as_tuple(image), config.img_shape):
        problems.append(
            f"weights {checkpoint.name!r} were trained on images of {as_tuple(image)} (height, "
            f"width, channels), but img_shape is {config.img_shape}."
        )
    return problems


def blank_network(config: VPTConfig) -> VPTNetwork:
    """Return a network with names and shapes but no numbers (on the meta device)."""
    with torch.device("meta"):
        return VPTNetwork(config)


def policy_part(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Leave out tensors of other heads, which OpenAI's and MineStudio's loaders ignore as well."""
    return {name: tensor for name, tensor in tensors.items() if name.startswith(PARTS)}


def _config_of_own(options: Mapping[str, Any], checkpoint: Checkpoint) -> VPTConfig:
    """Read our own options; sizes that they left to other weights come from the tensors."""
    fields = [field.name for field in dataclasses.fields(VPTConfig)]
    sizes = {name: options[name] for name in ("preset", *fields) if name in options}
    if "preset" in sizes or options.get("weights") is None:
        return VPTConfig.from_options(sizes)
    return dataclasses.replace(_inferred(checkpoint), **sizes)


def _inferred(checkpoint: Checkpoint) -> VPTConfig:
    tensors = checkpoint.tensors()
    return config_from_shapes({name: tuple(tensor.shape) for name, tensor in tensors.items()})


# ------------------- between `VPTConfig` and what checkpoints say about the size of their network
# MineStudio and OpenAI store the network's constructor arguments; a bare state dict tells most of
# them by the shapes of its tensors.

Shapes = Mapping[str, tuple[int, ...]]
"""State dict names to shapes."""

FIXED_ARGUMENTS: dict[str, Any] = {
    "attention_mask_style": "clipped_causal",
    "diff_mlp_embedding": False,
    "first_conv_norm": False,
    "impala_kwargs": {"post_pool_groups": 1},
    "img_statistics": None,
    "init_norm_kwargs": {"batch_norm": False, "group_norm_groups": 1},
    "pointwise_use_activation": False,
    "recurrence_is_residual": True,
    "recurrence_type": "transformer",
    "scale_input_img": True,
    "use_pointwise_layer": True,
    "use_pre_lstm_ln": False,
}
"""Arguments on which all published VPT policies agree, and for which there are no options here."""

WRITTEN_ARGUMENTS = (
    "attention_mask_style",
    "impala_kwargs",
    "init_norm_kwargs",
    "recurrence_is_residual",
    "recurrence_type",
    "use_pointwise_layer",
    "use_pre_lstm_ln",
)
"""Those of `FIXED_ARGUMENTS` that MineStudio's own files spell out; the rest are its defaults."""

DEFAULT_ARGUMENTS: dict[str, Any] = {
    "hidsize": 512,
    "impala_width": 1,
    "attention_memory_size": 2048,
    "n_recurrence_layers": 1,
    "use_pre_lstm_ln": True,
    "init_norm_kwargs": {},
    "impala_kwargs": {},
}
"""MineStudio's defaults where they differ from `VPTConfig`'s and `FIXED_ARGUMENTS`."""

DEFAULT_TEMPERATURE = 2.0
"""Assumed where a file does not say; all of OpenAI's models have it."""

NOT_ARGUMENTS = ("temperature", "action_head", *COMPUTE_FIELDS)
"""Fields of `VPTConfig` that belong to the heads, or to no checkpoint."""


def config_from_arguments(arguments: Mapping[str, Any], temperature: Any) -> VPTConfig:
    """Read the network arguments of MineStudio's or OpenAI's files.

    Arguments that neither code base uses for the policy are ignored, as in these code bases.

    Raises:
        CheckpointMismatchError: They describe a network that this package does not support.
    """
    arguments = {**DEFAULT_ARGUMENTS, **arguments}
    problems = [
        f"{name} is {shown(arguments[name])}, but only {value!r} is supported"
        for name, value in FIXED_ARGUMENTS.items()
        if name in arguments and not is_same(arguments[name], value)
    ]
    names = [f.name for f in dataclasses.fields(VPTConfig) if f.name not in NOT_ARGUMENTS]
    sizes = {name: arguments[name] for name in names if arguments.get(name) is not None}
    try:
        if isinstance(temperature, np.generic | np.ndarray):  # as in some files
            temperature = temperature.item()
        if is_number(temperature):
            temperature = float(temperature)
        config = VPTConfig(**sizes, temperature=temperature, action_head="joint")
    except (InvalidOptionsError, TypeError, ValueError, OverflowError) as error:
        problems += str(error).splitlines()
    if problems:
        raise CheckpointMismatchError(
            "the network it describes cannot be built here:" + "".join(f"\n  {p}" for p in problems)
        )
    return config


def is_same(found: Any, wanted: Any) -> bool:
    """Whether two plain values are equal; arrays, which a file may hold anywhere, never are."""
    try:
        return type(found) is type(wanted) and bool(found == wanted)
    except ValueError:  # nested arrays have no truth value
        return False


def arguments_from_config(config: VPTConfig) -> dict[str, Any]:
    """Return the arguments that make MineStudio's `VPTPolicy` build the same network."""
    sizes = {k: v for k, v in dataclasses.asdict(config).items() if k not in NOT_ARGUMENTS}
    fixed = {name: FIXED_ARGUMENTS[name] for name in WRITTEN_ARGUMENTS}
    return {**sizes, **fixed, "single_output": False}


def config_from_shapes(shapes: Shapes) -> VPTConfig:
    """Read the sizes off a state dict.

    Three things are assumed, because shapes do not show them: the image is square, `timesteps` is
    half of `attention_memory_size` (only their difference, the memory, matters to the network), and
    the temperature is `DEFAULT_TEMPERATURE`.

    Raises:
        CheckpointMismatchError: The names or shapes are not those of a VPT network.
    """
    try:
        return _read_sizes(shapes)
    except InvalidOptionsError as error:
        raise CheckpointMismatchError(f"its tensors have impossible sizes: {error}") from error
    except (KeyError, IndexError, ZeroDivisionError, ValueError, OverflowError) as error:
        raise CheckpointMismatchError(
            f"its tensors are not those of a VPT policy (looked for {error})"
        ) from error


def _read_sizes(shapes: Shapes) -> VPTConfig:
    block = "net.recurrent_layer.blocks.0"
    stack = "net.img_process.cnn.stacks.{}.firstconv.layer.weight"
    (hidsize,) = shapes["net.final_ln.weight"][:1]
    channels = [shapes[stack.format(i)][0] for i in range(_count(shapes, stack))]
    memory = shapes[f"{block}.r.orc_block.b_nd"][1]
    pixels = shapes["net.img_process.cnn.dense.layer.weight"][1] // channels[-1]
    side = math.isqrt(pixels) * 2 ** len(channels)
    base = VPTConfig().impala_chans
    width = channels[0] / base[0]
    scaled = [int(width * chans) for chans in base] == channels
    joint = shapes["pi_head.buttons.linear_layer.weight"][0] == NUM_BUTTONS
    return VPTConfig(
        img_shape=(side, side, 3),
        impala_width=width if scaled else 1,
        impala_chans=base if scaled else tuple(channels),
        hidsize=hidsize,
        attention_heads=shapes[f"{block}.r.orc_block.r_layer.weight"][0] // POSITION_BASES,
        n_recurrence_layers=_count(shapes, "net.recurrent_layer.blocks.{}.pre_r_ln.weight"),
        attention_memory_size=2 * memory,
        timesteps=memory,
        pointwise_ratio=shapes[f"{block}.mlp0.layer.weight"][0] // hidsize,
        temperature=DEFAULT_TEMPERATURE,
        action_head="joint" if joint else "factored",
    )


def _count(shapes: Shapes, name: str) -> int:
    """The number of names that match a pattern with one `{}` for a number."""
    pattern = re.compile(re.escape(name).replace(r"\{\}", r"\d+"))
    return sum(pattern.fullmatch(key) is not None for key in shapes)


# ------- writing a policy: as MineStudio's `VPTPolicy.from_pretrained` reads it, or in our own form


def export_checkpoint(checkpoint: Checkpoint, folder: str | Path) -> VPTConfig:
    """Convert a checkpoint of any form to MineStudio's; return the configuration written.

    Raises:
        CheckpointMismatchError: The checkpoint is invalid, or the folder already holds a model.
    """
    other = checkpoint.other_policy
    if other is not None:
        raise CheckpointMismatchError(
            f"weights {checkpoint.name!r} are of a policy of the class {other[0]}, which "
            "MineStudio does not have: `rllib model export --own` copies them as they are, for "
            "this package."
        )
    return export_network(load_network(checkpoint), folder)


def export_network(network: VPTNetwork, folder: str | Path) -> VPTConfig:
    """Write `config.json` and `model.safetensors`.

    MineStudio has joint heads only. Factored ones are multiplied out, which changes no probability.

    Args:
        network: The policy.
        folder: Created if necessary; must not hold a model yet.

    Returns:
        The configuration of the network as written, with joint heads.

    Raises:
        CheckpointMismatchError: The folder already holds a model.
    """
    config_file, weights_file = _new_files(folder, CONFIG_FILE)
    description = {
        "action_space": None,
        "policy_kwargs": arguments_from_config(network.config),
        "temperature": network.config.temperature,
    }
    state = _tensors(network) | _joint_heads(network)
    _write(weights_file, state, config_file, json.dumps(description, indent=2, sort_keys=True))
    return config_from_checkpoint(checkpoints.open(folder))


def save_checkpoint(
    checkpoint: Checkpoint,
    folder: str | Path,
    memory: int | None = None,
    temperature: float | None = None,
) -> VPTConfig:
    """Copy a checkpoint of any form into a small folder without pickle, heads as they are.

    Args:
        checkpoint: The original.
        folder: Created if necessary; must not hold a model yet.
        memory: The number of frames that the copy remembers, the present one included; None means
            as many as the original.
        temperature: Additionally divides the copy's logits.

    Returns:
        The configuration written.

    Raises:
        CheckpointMismatchError: The checkpoint is invalid, or the folder already holds a model.
        InvalidOptionsError: The original remembers fewer frames, or the temperature is invalid.
    """
    network = load_network(checkpoint)
    if memory is not None:
        network = with_shorter_memory(network, memory)
    state = _tensors(network)
    if temperature is not None:
        state = at_temperature(state, temperature)
    write_plain(folder, state, dataclasses.asdict(network.config))
    return network.config


def copy_plain(checkpoint: Checkpoint, folder: Path) -> None:
    """Copy a checkpoint unchanged into a new folder without pickle, without building its network.

    Raises:
        CheckpointError: The folder cannot be written.
        CheckpointMismatchError: The checkpoint is invalid, or the folder already holds a model.
    """
    config = config_from_checkpoint(checkpoint)
    state = {name: t.contiguous() for name, t in checkpoint.tensors().items()}
    write_plain(folder, state, dataclasses.asdict(config))


def write_plain(
    folder: str | Path, state: dict[str, Tensor], description: Mapping[str, Any]
) -> None:
    """Write `model.safetensors` and `network.json`.

    Raises:
        CheckpointError: The folder cannot be written.
        CheckpointMismatchError: It already holds a model.
    """
    description_file, weights_file = _new_files(folder, NETWORK)
    _write(weights_file, state, description_file, json.dumps(description, indent=2))


def with_shorter_memory(network: VPTNetwork, memory: int) -> VPTNetwork:
    """Return a copy that attends to the last `memory` frames only.

    Of the weights, only the attention's biases by age (`b_nd`) depend on the memory's length.

    Args:
        network: The original.
        memory: At least 1, which means to remember nothing: the present frame counts.

    Raises:
        InvalidOptionsError: The original remembers fewer frames.
    """
    config = network.config
    if not 1 <= memory <= config.memory_length:
        raise InvalidOptionsError(
            broken_rule("memory", memory, f"must be from 1 to {config.memory_length} frames")
        )
    shorter = VPTNetwork(
        dataclasses.replace(config, attention_memory_size=config.timesteps + memory)
    )
    state = {
        name: tensor[:, :memory] if name.endswith(".b_nd") else tensor
        for name, tensor in network.state_dict().items()
    }
    shorter.load_state_dict(state)
    return shorter


def _new_files(folder: str | Path, description: str) -> tuple[Path, Path]:
    """Create a folder for a model; return the paths of its description and its weights."""
    folder = Path(folder)
    files = folder / description, folder / TENSORS
    present = [path.name for path in files if path.exists()]
    if present:
        raise CheckpointMismatchError(
            f"folder {str(folder)!r} already has {' and '.join(present)}; name another one."
        )
    folder.mkdir(parents=True, exist_ok=True)
    return files


def _write(weights: Path, state: dict[str, Tensor], description: Path, text: str) -> None:
    """Write both files, the description last: without it the folder is no model.

    Weights of our own form get the digests of both.

    Raises:
        CheckpointError: They cannot be written; neither file is left.
    """
    text += "\n"
    try:
        with whole_file(weights) as partial:
            # One key each: the order of several would be random, and copies would differ.
            is_own = description.name == NETWORK
            metadata = digests_of(state, text.encode()) if is_own else {"format": "pt"}
            save_file(state, partial, metadata=metadata)
        write_whole(description, text)
    except (OSError, SafetensorError) as error:
        weights.unlink(missing_ok=True)
        raise CheckpointError(
            f"{str(weights.parent)!r} cannot be written: {error}. Free space there, or name "
            "another folder."
        ) from error


def _tensors(network: VPTNetwork) -> dict[str, torch.Tensor]:
    state = network.state_dict()
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


@torch.no_grad()
def _joint_heads(network: VPTNetwork) -> dict[str, torch.Tensor]:
    """Return the tensors of joint heads: weights and biases, like logits, sum over components."""
    state = {}
    for name, head in network.pi_head.items():
        if isinstance(head, FactoredHead):
            membership_nc, linear = head.membership_cn.T, head.linear_layer
            state[f"pi_head.{name}.linear_layer.weight"] = (membership_nc @ linear.weight).cpu()
            state[f"pi_head.{name}.linear_layer.bias"] = (membership_nc @ linear.bias).cpu()
    return state


# ---------------------------- what a checkpoint holds, without reading the values in its tensors


@dataclass(frozen=True)
class CheckpointSummary:
    """A checkpoint in numbers."""

    form: str
    """One of the forms in `checkpoints/checkpoint.py`."""

    weights: Path
    """The file with the tensors."""

    config: VPTConfig
    """The network."""

    described: bool
    """Whether the checkpoint states its configuration; otherwise the tensors gave it."""

    parameters: int
    """The number of values in the policy's tensors."""

    dtype: str
    """The stored dtypes of these values, separated by commas."""

    matched: int
    """Tensors that fit the network in name and shape."""

    expected: int
    """Tensors that the network has."""

    ignored: list[str]
    """Tensors of other heads."""

    problems: list[str]
    """What does not fit, one sentence each."""


def summarize(checkpoint: Checkpoint) -> CheckpointSummary:
    """Summarise a checkpoint by its names, shapes and settings.

    Raises:
        CheckpointMismatchError: It cannot be read, or is not of a VPT network.
    """
    config, tensors = config_from_checkpoint(checkpoint), checkpoint.tensors()
    policy = {name: tensor for name, tensor in tensors.items() if name.startswith(PARTS)}
    own = blank_network(config).state_dict()
    comparison = compare(own, policy)
    return CheckpointSummary(
        form=checkpoint.form,
        weights=checkpoint.weights,
        config=config,
        described=is_described(checkpoint),
        parameters=count_numbers(policy),
        dtype=dtypes(policy),
        matched=len(own) - len(comparison.missing) - len(comparison.misshapen),
        expected=len(own),
        ignored=[name for name in tensors if name not in policy],
        problems=weights_problems(config, checkpoint),
    )


def count_numbers(tensors: Mapping[str, Tensor]) -> int:
    """Return the number of values in all tensors."""
    return sum(tensor.numel() for tensor in tensors.values())


def dtypes(tensors: Mapping[str, Tensor]) -> str:
    """Return the dtypes of all tensors, separated by commas."""
    return ", ".join(sorted({str(t.dtype).removeprefix("torch.") for t in tensors.values()}))
