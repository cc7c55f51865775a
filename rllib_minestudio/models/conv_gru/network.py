"""The ConvGRU network: encoders of what it is shown, a GRU, and the heads.

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
from rllib_minestudio.models.arithmetic import FLOAT32, arithmetic
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
            parts: Of the observations; all of them are read.
            action_head: Reads a latent of `config.hidden_size`.
        """
        super().__init__()
        self.config = config
        size = config.hidden_size
        self.frame: FrameEncoder | None = None
        if IMAGE in parts:
            self.frame = FrameEncoder(parts[IMAGE].shape, config)
        self._texts = [name for name, part in parts.items() if _is_text(name, part)]
        # In the order of the parts: a name may hold what no layer may be called.
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
        """Look at a chunk.

        Args:
            obs: Nested as the environment's, [B, T, ...] each.
            first_bt: [B, T] bool, True where an observation begins an episode; all before it is
                then forgotten.
            state: `hidden` [B, hidden_size] before the chunk.

        Returns:
            The latent [B, T, hidden_size], and the state after the chunk.
        """
        with arithmetic(FLOAT32, first_bt.device):
            x_bte = F.relu(self.features_norm(self._features(flattened(obs))))
            memory_bte, hidden_be = self._remember(x_bte, first_bt, state[MEMORY])
        # What is seen now reaches the heads beside what is remembered, not through it alone.
        return self.norm(x_bte + memory_bte), {MEMORY: hidden_be}

    def initial_state(self, batch: int) -> dict[str, Tensor]:
        """Return the empty memory for `batch` environments, on the network's device."""
        return {MEMORY: self.norm.weight.new_zeros(batch, self.config.hidden_size)}

    def _features(self, flat: Mapping[str, Tensor]) -> Tensor:
        """The encoders' features added up: parts [B, T, ...] -> [B, T, hidden_size]."""
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
        """The GRU over a chunk (Cho et al. 2014; PyTorch's variant): its outputs, and the last.

        PyTorch runs over many steps in one call, which is several times as fast as a loop in
        Python, but cannot forget on the way: there is a call for each stretch between beginnings.
        """
        weights = [self.gru.weight_ih, self.gru.weight_hh, self.gru.bias_ih, self.gru.bias_hh]
        begins = first_bt.any(dim=0).nonzero().flatten().tolist()
        bounds = sorted({0, *begins, x_bte.shape[1]})
        keep_bt1 = (~first_bt).unsqueeze(-1).to(x_bte.dtype)
        outputs = []
        for start, stop in itertools.pairwise(bounds):
            hidden_1be = (hidden_be * keep_bt1[:, start]).unsqueeze(0)
            stretch_bte = x_bte[:, start:stop]
            # Not cuDNN's, which wants the weights in one piece of memory.
            with torch.backends.cudnn.flags(enabled=False):
                output_bte, hidden_1be = torch.gru(
                    stretch_bte, hidden_1be, weights, True, 1, 0.0, self.training, False, True
                )
            hidden_be = hidden_1be.squeeze(0)
            outputs.append(output_bte)
        return torch.cat(outputs, dim=1), hidden_be


def _is_text(name: str, part: ObservationPart) -> bool:
    """Whether a part is the bytes of a text."""
    return name != IMAGE and part.dtype == np.uint8 and len(part.shape) == 1


# --------------------------------------------------------------------- sizes of the ConvGRU network

_MOST_CHANNELS, _MOST_PIXELS = 4096, 64


def _triple_check(most: int) -> Check:
    """Return what judges three positive integers, one per convolution."""

    def problems(name: str, triple: Any) -> list[str]:
        is_triple = isinstance(triple, list | tuple) and len(triple) == 3
        if is_triple and all(is_integer(n) and 1 <= n <= most for n in triple):
            return []
        return [broken_rule(name, triple, f"must be three integers from 1 to {most}")]

    return problems


@dataclass(frozen=True, kw_only=True)
class ConvGRUConfig:
    """Everything but the spaces that decides the shape of a ConvGRU network."""

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
        "The convolutions look at squares of so many pixels each way.",
        check=_triple_check(_MOST_PIXELS),
    )
    strides: tuple[int, int, int] = option(
        (4, 2, 1),
        "The convolutions' squares lie so many pixels apart. Smaller strides tell more exactly "
        "where small things are, such as the cursor of a screen, and take longer.",
        check=_triple_check(_MOST_PIXELS),
    )
    frequencies: int = option(
        0,
        "Numbers besides the image are also told as sines and cosines of so many frequencies, each "
        "twice the one before. For places from -1 to 1, such as that of the callback `Cursor`: 6 "
        "tell apart what is a sixty-fourth apart.",
        least=0,
        most=16,
    )
    text_size: int = option(
        16, "Each byte of a text is embedded in this many numbers.", least=1, most=4096
    )
    temperature: float = option(
        1.0, "The action heads' logits are divided by this.", least=1e-300, most=1e6
    )

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ConvGRUConfig:
        """Check options as they come from a user or a YAML file, and fill in the defaults.

        Raises:
            InvalidOptionsError: If anything is wrong; lists all problems.
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
        """Pixels that a frame has each way at least: less leaves the last convolution nothing."""
        side = 1
        for kernel, stride in zip(reversed(self.kernels), reversed(self.strides), strict=True):
            side = (side - 1) * stride + kernel
        return side

    def side_left(self, side: int) -> int:
        """Pixels that the last convolution leaves of a frame's `side`, each way."""
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            side = (side - kernel) // stride + 1
        return side


# ----------------------------------------------------- from the parts of an observation to features
# Frames, texts, and other numbers.

BYTES = 256


class FrameEncoder(nn.Module):
    """Three convolutions and a linear layer (Mnih et al. 2015, "Human-level control", Methods).

    Orthogonal weights keep what differs between frames as large from layer to layer (Saxe et al.
    2014); with PyTorch's own, frames would look all but alike to the heads.
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
            # No numbers to draw, and for their shapes PyTorch would import its compiler: a second.
            return
        for name, parameter in self.named_parameters():
            if name.endswith("weight"):
                nn.init.orthogonal_(parameter, math.sqrt(2))
            else:
                nn.init.zeros_(parameter)

    def forward(self, image_bthwc: Tensor) -> Tensor:
        """[B, T, H, W, 3] uint8 -> [B, T, size]."""
        shape = image_bthwc.shape
        # The strides stay those of channels-last, which is what the convolutions are fastest with.
        # In place, and so on a copy: fresh memory for each operation would take longer than it.
        image_nchw = image_bthwc.flatten(0, 1).permute(0, 3, 1, 2).to(torch.float32, copy=True)
        image_nchw.div_(127.5).sub_(1)
        return self.linear(self.convolutions(image_nchw)).view(shape[0], shape[1], -1)


class TextEncoder(nn.Module):
    """A text of at most L bytes of UTF-8: every byte, at its place, has a part in the features.

    Zeros, which texts are filled up with, have none.
    """

    def __init__(self, length: int, embedding: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(BYTES, embedding, padding_idx=0)
        self.linear = nn.Linear(length * embedding, size)

    def forward(self, text_btl: Tensor) -> Tensor:
        """[B, T, L] uint8 -> [B, T, size]."""
        return self.linear(self.embedding(text_btl.int()).flatten(2))


class NumbersEncoder(nn.Module):
    """All other numbers, of several parts and whatever shapes, side by side.

    With frequencies, each number x is told as sin(2^k pi x) and cos(2^k pi x) besides, k from 0
    (Mildenhall et al. 2020, "NeRF", eq. 4): one layer can then tell places apart that differ by
    2^-k, which x alone would leave nearly the same. They are meant for numbers from -1 to 1.
    """

    def __init__(self, numbers: int, size: int, frequencies: int) -> None:
        super().__init__()
        self.frequencies = frequencies
        self.linear = nn.Linear(numbers * (1 + 2 * frequencies), size)

    def forward(self, parts_bt: Sequence[Tensor]) -> Tensor:
        """[B, T, ...] each -> [B, T, size]."""
        rows = [part.reshape(*part.shape[:2], -1).float() for part in parts_bt]
        numbers_btn = torch.cat(rows, dim=-1)
        # Degrees and counts reach into the hundreds: asinh leaves small numbers as they are.
        features = [numbers_btn.asinh()]
        for k in range(self.frequencies):
            phase_btn = (math.pi * 2**k) * numbers_btn
            features += [phase_btn.sin(), phase_btn.cos()]
        return self.linear(torch.cat(features, dim=-1))
