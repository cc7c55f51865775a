"""The ConvGRU network: encoders of an observation's parts, a GRU, and the heads.

Shapes for frames of 64 x 64, a text, and a chunk of T::

    image [B, T, 64, 64, 3] -> FrameEncoder, task_text [B, T, 64] -> TextEncoder, ...
        -> summed [B, T, 128] -> LayerNorm, ReLU -> + GRU -> LayerNorm [B, T, 128] -> heads
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.observations import ObservationPart, flattened
from rllib_minestudio.foundation.options import (
    Check,
    broken_rule,
    group_problems,
    is_integer,
    option,
)
from rllib_minestudio.models.acting import FLOAT32, arithmetic
from rllib_minestudio.models.value_head import ValueHead
from rllib_minestudio.models.vpt.network import ActionHeads

MEMORY = "hidden"
"""Name of the one part of the recurrent state, [B, hidden_size] float32."""


class ConvGRUNetwork(nn.Module):
    """Policy and value function over chunks of observations, with a memory between chunks.

    `value_head` and `action_head` read the latent that `forward` returns.
    """

    def __init__(
        self,
        config: ConvGRUConfig,
        parts: Mapping[str, ObservationPart],
        action_head: ActionHeads,
        values: Mapping[str, Values] | None = None,
    ) -> None:
        """Create a randomly initialised network (torch's global generator).

        Args:
            config: Its sizes.
            parts: The parts of an observation, all of which are read.
            action_head: Reads a latent of `config.hidden_size`.
            values: The values of those parts that are choices, not quantities.
        """
        super().__init__()
        self.config = config
        size = config.hidden_size
        # Lists in the order of the parts, whose names may be invalid as names of modules.
        self._frames = [name for name, part in parts.items() if is_frame(part)]
        frames = [FrameEncoder(parts[name].shape, config) for name in self._frames]
        self.frame = frames[0] if frames else None
        self.more_frames = nn.ModuleList(frames[1:])
        self._texts = [name for name, part in parts.items() if _is_text(part)]
        self.texts = nn.ModuleList(
            TextEncoder(parts[name].shape[0], config.text_size, size) for name in self._texts
        )
        one_hot = {name: v for name, v in (values or {}).items() if v.are_told_apart}
        self._choices = [name for name in parts if name in one_hot]
        self.choices = nn.ModuleList(ChoicesEncoder(one_hot[name], size) for name in self._choices)
        others = (*self._frames, *self._texts, *self._choices)
        self._numbers = [name for name in parts if name not in others]
        self.numbers: NumbersEncoder | None = None
        if self._numbers:
            count = sum(int(np.prod(parts[name].shape)) for name in self._numbers)
            self.numbers = NumbersEncoder(count, size, config.frequencies)
        self.gru = nn.GRUCell(size, size)
        self.features_norm = nn.LayerNorm(size)
        self.norm = nn.LayerNorm(size)
        self.action_head = action_head
        self.value_head = ValueHead(size)

    def forward(
        self, obs: Mapping[str, Any], first_bt: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Run the network, up to its heads, on a chunk.

        Args:
            obs: Nested as in the environment, [B, T, ...] each.
            first_bt: [B, T] bool, True where an observation begins an episode: everything before it
                is forgotten.
            state: `hidden` [B, hidden_size] before the chunk.

        Returns:
            The latent [B, T, hidden_size], and the state after the chunk.
        """
        with arithmetic(FLOAT32, first_bt.device):
            x_bte = F.relu(self.features_norm(self._features(flattened(obs))))
            memory_bte, hidden_be = self._remember(x_bte, first_bt, state[MEMORY])
        # The present features also reach the heads directly, not only through the memory.
        return self.norm(x_bte + memory_bte), {MEMORY: hidden_be}

    def initial_state(self, batch: int) -> dict[str, Tensor]:
        """Return the empty memory for `batch` environments, on the network's device."""
        return {MEMORY: self.norm.weight.new_zeros(batch, self.config.hidden_size)}

    def _features(self, flat: Mapping[str, Tensor]) -> Tensor:
        """The sum of the encoders' features: parts [B, T, ...] -> [B, T, hidden_size]."""
        frames = () if self.frame is None else (self.frame, *self.more_frames)
        features = [
            encoder(flat[name])
            for names, encoders in (
                (self._texts, self.texts),
                (self._frames, frames),
                (self._choices, self.choices),
            )
            for name, encoder in zip(names, encoders, strict=True)
        ]
        if self.numbers is not None:
            features.append(self.numbers([flat[name] for name in self._numbers]))
        return torch.stack(features).sum(dim=0)

    def _remember(
        self, x_bte: Tensor, first_bt: Tensor, hidden_be: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Run the GRU (Cho et al. 2014; PyTorch's variant) over a chunk.

        One call of PyTorch's GRU over many steps is several times as fast as a loop in Python, but
        cannot forget on the way: there is a call for each stretch between episode starts.

        Returns:
            The outputs [B, T, hidden_size], and the last hidden state [B, hidden_size].
        """
        weights = [self.gru.weight_ih, self.gru.weight_hh, self.gru.bias_ih, self.gru.bias_hh]
        begins = first_bt.any(dim=0).nonzero().flatten().tolist()
        bounds = sorted({0, *begins, x_bte.shape[1]})
        keep_bt1 = (~first_bt).unsqueeze(-1).to(x_bte.dtype)
        outputs = []
        for start, stop in itertools.pairwise(bounds):
            hidden_1be = (hidden_be * keep_bt1[:, start]).unsqueeze(0)
            stretch_bte = x_bte[:, start:stop]
            # Not by cuDNN, which needs the weights in one piece of memory.
            with torch.backends.cudnn.flags(enabled=False):
                output_bte, hidden_1be = torch.gru(
                    stretch_bte, hidden_1be, weights, True, 1, 0.0, self.training, False, True
                )
            hidden_be = hidden_1be.squeeze(0)
            outputs.append(output_bte)
        return torch.cat(outputs, dim=1), hidden_be


def _is_text(part: ObservationPart) -> bool:
    return part.dtype == np.uint8 and len(part.shape) == 1


def is_frame(part: ObservationPart) -> bool:
    """Whether a part is a picture: (H, W, channels) or (channels, H, W), or (H, W) of uint8.

    Smaller ones than any convolution is worth are read as numbers.
    """
    axes = len(part.shape)
    is_picture = axes == 3 or (axes == 2 and part.dtype == np.uint8)
    return is_picture and min(_layout(part.shape)[:2]) >= LEAST_SIDE


def _layout(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return height, width and channels; the shorter of the outer axes has the channels."""
    if len(shape) == 2:
        return (*shape, 1)
    return (shape[1], shape[2], shape[0]) if shape[0] < shape[2] else shape  # type: ignore[return-value]


# --------------------------------------------------------------------- sizes of the ConvGRU network

_MOST_CHANNELS, _MOST_PIXELS = 4096, 64


def _triple_check(most: int) -> Check:
    """Return a check of three positive integers, one per convolution."""

    def problems(name: str, triple: Any) -> list[str]:
        is_triple = isinstance(triple, list | tuple) and len(triple) == 3
        if is_triple and all(is_integer(n) and 1 <= n <= most for n in triple):
            return []
        return [broken_rule(name, triple, f"must be three integers from 1 to {most}")]

    return problems


@dataclass(frozen=True, kw_only=True)
class ConvGRUConfig:
    """Everything but the spaces that determines the shape of a ConvGRU network."""

    hidden_size: int = option(
        128,
        "The GRU, and the latent that the heads read, is this wide. A wider one takes larger steps "
        "at the same learning rate.",
        least=1,
        most=16384,
    )
    channels: tuple[int, int, int] = option(
        (32, 64, 64),
        "The three convolutions of the image have this many channels.",
        check=_triple_check(_MOST_CHANNELS),
    )
    kernels: tuple[int, int, int] = option(
        (8, 4, 3),
        "The convolutions' filters are this many pixels high and wide. With these and the default "
        "strides, frames of less than 36 pixels get smaller ones: 4, 3, 3 from 16 pixels on, and "
        "3, 3, 3 below.",
        check=_triple_check(_MOST_PIXELS),
    )
    strides: tuple[int, int, int] = option(
        (4, 2, 1),
        "The convolutions' filters move by this many pixels. Smaller strides locate small things, "
        "such as the cursor of a screen, more exactly, and take longer.",
        check=_triple_check(_MOST_PIXELS),
    )
    frequencies: int = option(
        0,
        "Numbers outside the image are also given as sines and cosines of this many frequencies, "
        "each twice the one before. For positions from -1 to 1, such as that of the callback "
        "`Cursor`: 6 distinguish positions that are 1/64 apart.",
        least=0,
        most=16,
    )
    text_size: int = option(
        16, "Each byte of a text is embedded in this many numbers.", least=1, most=4096
    )
    temperature: float = option(
        1.0, "The action heads' logits are divided by this.", least=1e-6, most=1e6
    )

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ConvGRUConfig:
        """Check options as they come from a user or a YAML file, and fill in the defaults.

        Raises:
            InvalidOptionsError: An option is unknown or invalid; lists all problems.
        """
        problems = group_problems(cls, options, "model")
        if problems:
            raise InvalidOptionsError(problems)
        given: dict[str, Any] = {}
        for name in (f.name for f in fields(cls) if f.name in options):
            value = options[name]
            given[name] = tuple(value) if isinstance(value, list) else value
        return cls(**given)

    @property
    def smallest_side(self) -> int:
        """The least height and width of a frame, in pixels, that every convolution can process."""
        side = 1
        for kernel, stride in zip(reversed(self.kernels), reversed(self.strides), strict=True):
            side = (side - 1) * stride + kernel
        return side

    def side_left(self, side: int) -> int:
        """Return how many pixels the last convolution leaves of a frame's `side`."""
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            side = (side - kernel) // stride + 1
        return side

    def fitting(self, side: int) -> ConvGRUConfig:
        """Return a config for frames of this least side: smaller filters, unless some were set."""
        if side >= self.smallest_side or (self.kernels, self.strides) != _DEFAULT_FILTERS:
            return self
        kernels, strides = _SMALLER_FILTERS[0 if side >= _MEDIUM_SIDE else 1]
        return replace(self, kernels=kernels, strides=strides)

    def least_side_for(self, part: ObservationPart) -> int | None:
        """Return the least side that the filters can process if a frame's is less, else None."""
        side = min(_layout(part.shape)[:2])
        least = self.fitting(side).smallest_side
        return least if side < least else None


_DEFAULT_FILTERS = ((8, 4, 3), (4, 2, 1))
_SMALLER_FILTERS = (((4, 3, 3), (2, 1, 1)), ((3, 3, 3), (1, 1, 1)))
"""(kernels, strides) for frames from `_MEDIUM_SIDE` pixels on, and for smaller ones."""
_MEDIUM_SIDE, LEAST_SIDE = 16, 7


# ----------------------------------------------------- from the parts of an observation to features

BYTES = 256


class FrameEncoder(nn.Module):
    """Three convolutions and a linear layer (Mnih et al. 2015, "Human-level control", Methods).

    Orthogonal weights preserve the differences between frames from layer to layer (Saxe et al.
    2014). With PyTorch's default weights, frames would look almost the same to the heads.
    """

    def __init__(self, shape: tuple[int, ...], config: ConvGRUConfig) -> None:
        """Create the layers for frames of one shape; see `is_frame`."""
        super().__init__()
        layers: list[nn.Module] = []
        *sides, channels = _layout(shape)
        self._axes = len(shape)
        self._has_channels_first = self._axes == 3 and shape[2] != channels
        config = config.fitting(min(sides))
        inputs = (channels, *config.channels)
        for given, kernel, stride in zip(
            itertools.pairwise(inputs), config.kernels, config.strides, strict=True
        ):
            layers += [nn.Conv2d(*given, kernel, stride=stride), nn.ReLU()]
        self.convolutions = nn.Sequential(*layers, nn.Flatten())
        height, width = map(config.side_left, sides)
        self.linear = nn.Linear(config.channels[-1] * height * width, config.hidden_size)
        if self.linear.weight.is_meta:
            # There is nothing to draw, and PyTorch would import its compiler: a second.
            return
        for name, parameter in self.named_parameters():
            if name.endswith("weight"):
                nn.init.orthogonal_(parameter, math.sqrt(2))
            else:
                nn.init.zeros_(parameter)

    def forward(self, image_bt: Tensor) -> Tensor:
        """[B, T, H, W, C], [B, T, C, H, W] or [B, T, H, W] -> [B, T, size]."""
        shape = image_bt.shape
        image_n = image_bt.flatten(0, 1)
        if self._axes == 2:
            image_n = image_n.unsqueeze(-1)
        # The strides stay channels-last, with which convolutions are fastest. Works in place, on a
        # copy, because new memory for each operation would take longer than the operation.
        image_nchw = image_n if self._has_channels_first else image_n.permute(0, 3, 1, 2)
        image_nchw = image_nchw.to(torch.float32, copy=True)
        if image_bt.dtype == torch.uint8:
            image_nchw.div_(127.5).sub_(1)
        return self.linear(self.convolutions(image_nchw)).view(shape[0], shape[1], -1)


class TextEncoder(nn.Module):
    """Encodes a text of at most L bytes of UTF-8; every byte contributes, by its position.

    Zeros, with which texts are padded, contribute nothing.
    """

    def __init__(self, length: int, embedding: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(BYTES, embedding, padding_idx=0)
        self.linear = nn.Linear(length * embedding, size)

    def forward(self, text_btl: Tensor) -> Tensor:
        """[B, T, L] uint8 -> [B, T, size]."""
        return self.linear(self.embedding(text_btl.int()).flatten(2))


MOST_VALUES = 1024
"""Choices of more values are read as numbers."""


class Values(NamedTuple):
    """The values that the numbers of a part may have, where they are choices, not quantities."""

    sizes: tuple[int, ...]
    """How many values each number may have."""

    starts: tuple[int, ...]
    """The lowest value of each."""

    @property
    def are_told_apart(self) -> bool:
        """Whether each value gets a weight of its own: two need none, and there may be too many."""
        return max(self.sizes) > 2 and sum(self.sizes) <= MOST_VALUES


class ChoicesEncoder(nn.Module):
    """Encodes numbers that are choices, each value by a vector of its own (one-hot, and linear)."""

    def __init__(self, values: Values, size: int) -> None:
        super().__init__()
        self._sizes, self._starts = values
        self.linear = nn.Linear(sum(values.sizes), size)

    def forward(self, part_bt: Tensor) -> Tensor:
        """[B, T, ...] integers -> [B, T, size]."""
        rows_btk = part_bt.reshape(*part_bt.shape[:2], -1).long()
        one_hot = [
            # Padding is 0, which need not be a value.
            F.one_hot((rows_btk[..., k] - start).clamp(0, size - 1), size)
            for k, (size, start) in enumerate(zip(self._sizes, self._starts, strict=True))
        ]
        return self.linear(torch.cat(one_hot, dim=-1).float())


class NumbersEncoder(nn.Module):
    """Encodes all other parts, of any shape, as one vector of numbers.

    With frequencies, each number x is also given as sin(2^k pi x) and cos(2^k pi x), k from 0
    (Mildenhall et al. 2020, "NeRF", eq. 4): one layer can then distinguish positions that differ by
    2^-k, which are nearly the same in x alone. They are meant for numbers from -1 to 1.
    """

    def __init__(self, numbers: int, size: int, frequencies: int) -> None:
        super().__init__()
        self.frequencies = frequencies
        self.linear = nn.Linear(numbers * (1 + 2 * frequencies), size)

    def forward(self, parts_bt: Sequence[Tensor]) -> Tensor:
        """[B, T, ...] each -> [B, T, size]."""
        rows = [part.reshape(*part.shape[:2], -1).float() for part in parts_bt]
        numbers_btn = torch.cat(rows, dim=-1)
        # Degrees and counts reach into the hundreds; asinh keeps small numbers as they are.
        features = [numbers_btn.asinh()]
        for k in range(self.frequencies):
            phase_btn = (math.pi * 2**k) * numbers_btn
            features += [phase_btn.sin(), phase_btn.cos()]
        return self.linear(torch.cat(features, dim=-1))
