"""The ConvGRU network: encoders of an observation's parts, a GRU, and the heads.

Shapes for frames of 64 x 64, a text, and a chunk of T::

    image [B, T, 64, 64, 3] -> FrameEncoder, task_text [B, T, 64] -> TextEncoder, ...
        -> summed [B, T, 128] -> LayerNorm, ReLU -> + GRU -> LayerNorm [B, T, 128] -> heads
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.observations import IMAGE, ObservationPart, flattened
from rllib_minestudio.foundation.options import (
    Check,
    broken_rule,
    group_problems,
    is_integer,
    option,
)
from rllib_minestudio.models.float_precision import FLOAT32, arithmetic
from rllib_minestudio.models.value_head import ValueHead
from rllib_minestudio.models.vpt.network import ActionHeads

MEMORY = "hidden"
"""Name of the one part of the recurrent state, [B, hidden_size] float32."""


class ConvGRUNetwork(nn.Module):
    """Policy and value function over chunks of observations, with a memory between chunks.

    `value_head` and `action_head` read the latent that `forward` returns.
    """

    def __init__(
        self, config: ConvGRUConfig, parts: Mapping[str, ObservationPart], action_head: ActionHeads
    ) -> None:
        """Create a randomly initialised network (torch's global generator).

        Args:
            config: Its sizes.
            parts: The parts of an observation, all of which are read.
            action_head: Reads a latent of `config.hidden_size`.
        """
        super().__init__()
        self.config = config
        size = config.hidden_size
        self.frame: FrameEncoder | None = None
        if IMAGE in parts:
            self.frame = FrameEncoder(parts[IMAGE].shape, config)
        self._texts = [name for name, part in parts.items() if _is_text(name, part)]
        # A list in the order of the parts, whose names may be invalid as names of modules.
        self.texts = nn.ModuleList(
            TextEncoder(parts[name].shape[0], config.text_size, size) for name in self._texts
        )
        self._numbers = [name for name in parts if name not in (IMAGE, *self._texts)]
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
        texts = zip(self._texts, self.texts, strict=True)
        features = [encoder(flat[name]) for name, encoder in texts]
        if self.frame is not None:
            features.append(self.frame(flat[IMAGE]))
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


def _is_text(name: str, part: ObservationPart) -> bool:
    return name != IMAGE and part.dtype == np.uint8 and len(part.shape) == 1


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
        "The convolutions' filters are this many pixels high and wide.",
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


# ----------------------------------------------------- from the parts of an observation to features

BYTES = 256


class FrameEncoder(nn.Module):
    """Three convolutions and a linear layer (Mnih et al. 2015, "Human-level control", Methods).

    Orthogonal weights preserve the differences between frames from layer to layer (Saxe et al.
    2014). With PyTorch's default weights, frames would look almost the same to the heads.
    """

    def __init__(self, shape: tuple[int, ...], config: ConvGRUConfig) -> None:
        """Create the layers for frames of one shape, (height, width, 3)."""
        super().__init__()
        layers: list[nn.Module] = []
        inputs = (3, *config.channels)
        for given, kernel, stride in zip(
            itertools.pairwise(inputs), config.kernels, config.strides, strict=True
        ):
            layers += [nn.Conv2d(*given, kernel, stride=stride), nn.ReLU()]
        self.convolutions = nn.Sequential(*layers, nn.Flatten())
        height, width = (config.side_left(side) for side in shape[:2])
        self.linear = nn.Linear(config.channels[-1] * height * width, config.hidden_size)
        if self.linear.weight.is_meta:
            # There is nothing to draw, and PyTorch would import its compiler: a second.
            return
        for name, parameter in self.named_parameters():
            if name.endswith("weight"):
                nn.init.orthogonal_(parameter, math.sqrt(2))
            else:
                nn.init.zeros_(parameter)

    def forward(self, image_bthwc: Tensor) -> Tensor:
        """[B, T, H, W, 3] uint8 -> [B, T, size]."""
        shape = image_bthwc.shape
        # The strides stay channels-last, with which convolutions are fastest. Works in place, on a
        # copy, because new memory for each operation would take longer than the operation.
        image_nchw = image_bthwc.flatten(0, 1).permute(0, 3, 1, 2).to(torch.float32, copy=True)
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
