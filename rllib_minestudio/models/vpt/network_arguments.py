"""Between ``VPTConfig`` and what checkpoints say about the size of their network.

MineStudio and OpenAI store the network's constructor arguments; a bare state dict tells most of
them by the shapes of its tensors.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

from rllib_minestudio.buttons import NUM_BUTTONS
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.models.vpt.attention import POSITION_BASES
from rllib_minestudio.models.vpt.config import COMPUTE_FIELDS, VPTConfig

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
"""Those of them that MineStudio's own files spell out; the others are its defaults."""

DEFAULT_ARGUMENTS: dict[str, Any] = {
    "hidsize": 512,
    "impala_width": 1,
    "attention_memory_size": 2048,
    "n_recurrence_layers": 1,
    "use_pre_lstm_ln": True,
    "init_norm_kwargs": {},
    "impala_kwargs": {},
}
"""MineStudio's defaults where they differ from ``VPTConfig``'s and ``FIXED_ARGUMENTS``."""

DEFAULT_TEMPERATURE = 2.0
"""Assumed where a file does not tell; all of OpenAI's models have it."""

NOT_ARGUMENTS = ("temperature", "action_head", *COMPUTE_FIELDS)
"""Fields of ``VPTConfig`` that belong to the heads, or to no checkpoint."""


def config_from_arguments(arguments: Mapping[str, Any], temperature: float) -> VPTConfig:
    """Reads the network arguments of MineStudio's or OpenAI's files.

    Arguments that neither code base uses for the policy are ignored, as they do themselves.

    Raises:
        CheckpointMismatchError: They describe a network that this package does not have.
    """
    arguments = {**DEFAULT_ARGUMENTS, **arguments}
    problems = [
        f"{name} is {arguments[name]!r}, but only {value!r} is supported"
        for name, value in FIXED_ARGUMENTS.items()
        if name in arguments and not is_same(arguments[name], value)
    ]
    names = [f.name for f in dataclasses.fields(VPTConfig) if f.name not in NOT_ARGUMENTS]
    sizes = {name: arguments[name] for name in names if arguments.get(name) is not None}
    try:
        # The temperature is a NumPy number in some files.
        config = VPTConfig(**sizes, temperature=float(temperature), action_head="joint")
    except (InvalidOptionsError, TypeError, ValueError, OverflowError) as error:
        problems += str(error).splitlines()
    if problems:
        raise CheckpointMismatchError(
            "the network it describes cannot be built here:" + "".join(f"\n  {p}" for p in problems)
        )
    return config


def is_same(found: Any, wanted: Any) -> bool:
    """Whether plain data are equal; an array, which a file may hold anywhere, never is."""
    try:
        return type(found) is type(wanted) and bool(found == wanted)
    except ValueError:  # arrays within have no truth value
        return False


def arguments_from_config(config: VPTConfig) -> dict[str, Any]:
    """Returns the arguments that make MineStudio's ``VPTPolicy`` build the same network."""
    sizes = {k: v for k, v in dataclasses.asdict(config).items() if k not in NOT_ARGUMENTS}
    fixed = {name: FIXED_ARGUMENTS[name] for name in WRITTEN_ARGUMENTS}
    return {**sizes, **fixed, "single_output": False}


def config_from_shapes(shapes: Shapes) -> VPTConfig:
    """Reads the sizes off a state dict.

    Three things do not show: the image is taken to be square, ``timesteps`` to be half of
    ``attention_memory_size`` (only their difference, the memory, matters to the network), and
    the temperature to be ``DEFAULT_TEMPERATURE``.

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
    """How many names fit a pattern with one ``{}`` for a number."""
    pattern = re.compile(re.escape(name).replace(r"\{\}", r"\d+"))
    return sum(pattern.fullmatch(key) is not None for key in shapes)
