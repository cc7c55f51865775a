"""Sizes and options of the VPT network: one validated dataclass and a table of presets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rllib_minestudio.errors import InvalidOptionsError, did_you_mean
from rllib_minestudio.foundation.options import (
    bounds_of,
    broken_rule,
    is_integer,
    is_number,
    not_a_choice,
    option,
    shown,
    types_of,
)

ACTION_HEADS = ("joint", "factored")
PRECISIONS = ("float32", "tf32", "bfloat16")
"""The keys of `acting.DTYPES`, without importing torch."""
COMPUTE_FIELDS = ("precision", "compile")
"""Fields that say how a network is computed, not which network it is."""

_LARGEST_SIDE, _LARGEST_CHANNELS, _MOST_STACKS = 4096, 8192, 10
MOST_PARAMETERS = 20e9
"""The most parameters of a network: 80 GB. VPT 3x has half a billion."""


@dataclass(frozen=True)
class VPTConfig:
    """Everything that determines the shape of a VPT network.

    Fields are named as the network arguments in MineStudio's and OpenAI's checkpoints, so that
    their configuration files can be read into this class.

    Raises:
        InvalidOptionsError: Fields are out of range or contradict each other; lists every problem.
    """

    img_shape: tuple[int, int, int] = option(
        (128, 128, 3),
        "An observation has this height, width and number of channels; height and width are "
        "multiples of 8. Left out, they are the environment's, or those of `weights`.",
    )
    impala_width: float = option(
        4, "The channel counts in `impala_chans` are multiplied by this.", least=1e-12, most=256
    )
    impala_chans: tuple[int, ...] = option(
        (16, 32, 32),
        "Each convolution stack has this many channels before they are multiplied; each halves the "
        "image.",
    )
    hidsize: int = option(
        1024,
        "The transformer, and the latent that the heads read, is this wide.",
        least=1,
        most=16384,
    )
    attention_heads: int = option(
        8, "Each layer has this many attention heads; they divide `hidsize`.", least=1, most=1024
    )
    n_recurrence_layers: int = option(
        4, "There are this many transformer blocks.", least=1, most=128
    )
    attention_memory_size: int = option(
        256,
        "The memory and `timesteps` together span this many frames, as MineStudio counts; the "
        "memory is the difference.",
        most=65536,
    )
    timesteps: int = option(
        128,
        "`attention_memory_size` was chosen for training chunks of this length.",
        least=1,
        most=65536,
    )
    pointwise_ratio: int = option(
        4, "Feed-forward layers are this many times as wide as `hidsize`.", least=1, most=64
    )
    temperature: float = option(
        2.0,
        "The action heads' logits are divided by this; it is 2.0 in OpenAI's models.",
        least=1e-6,
        most=1e6,
    )
    action_head: str = option(
        "joint",
        "`joint` has a logit for each joint action, as in VPT; `factored` has a logit for each "
        "key group and camera bin, summed into the joint logits, for learning from few samples.",
        choices=ACTION_HEADS,
    )
    precision: str = option(
        "float32",
        "The trunk computes in this precision. `tf32` lets a GPU round the factors in convolutions "
        "and products to 10 bits, as MineStudio and torch's default do; without a GPU it is "
        "float32. `bfloat16` (autocast; weights, memory, heads and statistics stay float32) is 2 "
        "to 3 times faster where the processor has it. Both are close rather than equal.",
        choices=PRECISIONS,
    )
    compile: bool = option(
        False,
        "The image encoder goes through torch.compile, which needs a C++ compiler on the CPU.",
    )

    def __post_init__(self) -> None:
        """Turn lists into tuples, which YAML lacks, and validate."""
        object.__setattr__(self, "img_shape", as_tuple(self.img_shape))
        object.__setattr__(self, "impala_chans", as_tuple(self.impala_chans))
        problems = _type_problems(self) or _range_problems(self)
        if problems:
            raise InvalidOptionsError(problems)

    @property
    def memory_length(self) -> int:
        """The number of frames a frame may attend to, itself included: the memory's length."""
        return self.attention_memory_size - self.timesteps

    @property
    def channels(self) -> tuple[int, ...]:
        """Output channels of each convolution stack."""
        return tuple(int(self.impala_width * base) for base in self.impala_chans)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], other_names: Sequence[str] = ()) -> VPTConfig:
        """Build a configuration from a preset's name and overrides.

        Args:
            options: `{"preset": name, field: value, ...}`; without `preset`, or if it is None, the
                preset is `1x`.
            other_names: Further names that the caller accepts, for error messages.

        Raises:
            InvalidOptionsError: The preset or a field is unknown (the message has the nearest valid
                name), or a value is invalid.
        """
        preset, fields = preset_and_fields(options, other_names)
        return dataclasses.replace(PRESETS[preset or DEFAULT_PRESET], **fields)


def preset_and_fields(
    options: Mapping[str, Any], other_names: Sequence[str] = ()
) -> tuple[str | None, dict[str, Any]]:
    """Return the preset that options name, None if they name none, and the fields they set.

    Raises:
        InvalidOptionsError: The preset or a field is unknown; the message has the nearest valid
            name.
    """
    given = dict(options)
    preset = given.pop("preset", None)
    fields = [field.name for field in dataclasses.fields(VPTConfig)]
    valid = ["preset", *fields, *other_names]
    problems = []
    if preset is not None and (not isinstance(preset, str) or preset not in PRESETS):
        problems.append(
            f"model preset is {shown(preset)}, which does not exist; the presets are "
            f"{', '.join(PRESETS)}.{did_you_mean(preset, PRESETS)}"
        )
    problems += [
        f"model option {shown(name)} does not exist; the options are {', '.join(valid)}."
        f"{did_you_mean(name, valid)}"
        for name in given
        if name not in fields
    ]
    if problems:
        raise InvalidOptionsError(problems)
    return preset, given


def as_tuple(value: Any) -> Any:
    """Turn a list into a tuple; leave everything else for the type check."""
    return tuple(value) if isinstance(value, list) else value


def _is_integers(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(map(is_integer, value))


class _Type(NamedTuple):
    """A type of fields: what messages call it, and which values have it."""

    name: str
    holds: Callable[[Any], bool]


_TYPES = {
    tuple: _Type("a list of integers", _is_integers),
    bool: _Type("true or false", lambda value: isinstance(value, bool)),
    float: _Type("a finite number", is_number),
    int: _Type("an integer", is_integer),
}


def _type_problems(config: VPTConfig) -> list[str]:
    """Return one sentence for each field whose value has the wrong type."""
    problems = []
    for name, (kind, _) in types_of(VPTConfig).items():
        value = getattr(config, name)
        if kind in _TYPES and not _TYPES[kind].holds(value):
            problems.append(broken_rule(name, value, f"must be {_TYPES[kind].name}"))
    return problems


def _range_problems(config: VPTConfig) -> list[str]:
    """Return one sentence for each rule that the (well-typed) values break."""
    problems = _extent_problems(config)
    if problems:
        return problems
    for field in dataclasses.fields(config):
        value, bounds = getattr(config, field.name), bounds_of(field)
        # Arrays, which a pickle may hold anywhere, have no truth value.
        if bounds.choices and not (isinstance(value, str) and value in bounds.choices):
            problems.append(not_a_choice(field.name, value, bounds.choices))
        elif is_number(value) and value < bounds.least:
            rule = f"at least {bounds.least}" if bounds.least >= 1 else "positive"
            problems.append(broken_rule(field.name, value, f"must be {rule}"))
    if config.memory_length < 1:
        problems.append(
            f"attention_memory_size must exceed timesteps (the difference is the memory), but "
            f"{config.attention_memory_size=} and {config.timesteps=}".replace("config.", "")
        )
    if config.attention_heads >= 1 and config.hidsize % config.attention_heads:
        problems.append(
            f"hidsize must be a multiple of attention_heads, "
            f"but {config.hidsize} is not one of {config.attention_heads}"
        )
    if any(channels < 1 for channels in config.channels):
        problems.append(
            f"impala_width * impala_chans must be at least 1, but gives {config.channels}"
        )
    problems += _image_problems(config)
    if not problems and _parameters(config) > MOST_PARAMETERS:
        problems.append(
            f"the sizes make a network of {_parameters(config):.1e} parameters, but "
            f"{MOST_PARAMETERS:.0e} is the maximum; make hidsize or n_recurrence_layers smaller"
        )
    return problems


def _extent_problems(config: VPTConfig) -> list[str]:
    """Return one sentence for each field that is too large."""
    problems = [
        broken_rule(field.name, value, f"must be at most {bounds_of(field).most:g}")
        for field in dataclasses.fields(config)
        if is_number(value := getattr(config, field.name)) and value > bounds_of(field).most
    ]
    if len(config.impala_chans) > _MOST_STACKS:
        problems.append(f"impala_chans must have at most {_MOST_STACKS} stacks")
    if any(not 1 <= chans <= _LARGEST_CHANNELS for chans in config.impala_chans):
        problems.append(f"impala_chans must be from 1 to {_LARGEST_CHANNELS} each")
    if any(side > _LARGEST_SIDE for side in config.img_shape):
        problems.append(f"img_shape must be at most {_LARGEST_SIDE} pixels high and wide")
    return problems


def _parameters(config: VPTConfig) -> float:
    """The approximate number of parameters: those of matrices, without biases and norms."""
    block = config.hidsize**2 * (4 + 2 * config.pointwise_ratio)
    pixels = math.prod(config.img_shape[:2]) / 4 ** len(config.impala_chans)
    image = pixels * config.channels[-1] * 256 + 5 * 9 * sum(c**2 for c in config.channels)
    return config.n_recurrence_layers * block + image + config.hidsize * 9000.0


def _image_problems(config: VPTConfig) -> list[str]:
    """Return one sentence for each way in which `img_shape` cannot be an image here."""
    if len(config.img_shape) != 3 or config.img_shape[2] != 3:
        return [broken_rule("img_shape", config.img_shape, "must be (height, width, 3)")]
    shrink = 2 ** len(config.impala_chans)
    if any(size < shrink or size % shrink for size in config.img_shape[:2]):
        return [
            f"img_shape's height and width must be multiples of {shrink} (each of the "
            f"{len(config.impala_chans)} convolution stacks halves them), "
            f"but are {config.img_shape[0]} and {config.img_shape[1]}"
        ]
    return []


DEFAULT_PRESET = "1x"

PRESETS: dict[str, VPTConfig] = {
    # OpenAI's published sizes: 71 M, 248 M and about 0.5 B parameters.
    "1x": VPTConfig(hidsize=1024, impala_width=4, attention_heads=8),
    "2x": VPTConfig(hidsize=2048, impala_width=8, attention_heads=16),
    "3x": VPTConfig(hidsize=3072, impala_width=12, attention_heads=24),
    # Learns from scratch in minutes on two CPU cores.
    "nano": VPTConfig(
        img_shape=(64, 64, 3),
        impala_width=0.5,
        hidsize=128,
        attention_heads=4,
        n_recurrence_layers=2,
        attention_memory_size=128,
        timesteps=64,
        temperature=1.0,
        action_head="factored",
    ),
}
"""Named sizes; any field can be overridden through `VPTConfig.from_options`."""

_PUBLISHED = ("1x", "2x", "3x")


def size_in_words(config: VPTConfig) -> str:
    """Return the name of the preset of a network's size, or its sizes if there is none."""
    for name, preset in PRESETS.items():
        alike = {field: getattr(preset, field) for field in ("temperature", *COMPUTE_FIELDS)}
        if dataclasses.replace(config, **alike) == preset:
            return name
    return (
        f"hidsize {config.hidsize}, impala_width {config.impala_width:g}, "
        f"{config.n_recurrence_layers} layers, {config.attention_heads} heads"
    )


def is_published_size(config: VPTConfig) -> bool:
    """Whether a network has the width, depth and image size of one of OpenAI's."""

    def size(of: VPTConfig) -> tuple[Any, ...]:
        return of.img_shape, of.impala_width, of.hidsize, of.n_recurrence_layers

    return any(size(config) == size(PRESETS[name]) for name in _PUBLISHED)
