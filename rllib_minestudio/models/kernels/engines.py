"""What computes convolutions, behind one interface: engines.

An engine computes one of two kinds of work: a stack of convolutions with all that lies between them
(`ConvolutionStack`), or a single 3x3 convolution (`Convolution`). For either it says

    why_not     why this work is not for it, if it is not
    is_fast     whether it is the fastest on a processor
    is_ready    whether it can start, after compiling its kernels if need be
    pack        how weights are laid out for it
    forward     outputs, without gradients
    compute     outputs of weights as they are now, with gradients where they are asked for

and an `EngineWithGradients` does so by a pair of its own, `forward_keeping` and `backward`.
`convolutions` lists the engines and chooses among them.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

if TYPE_CHECKING:
    from rllib_minestudio.models.kernels.machine_code import MachineCode

_logger = logging.getLogger(__name__)

COLOURS = 3
"""Channels of an image."""

CPU = torch.device("cpu")

# ---------------------------------------------------------------------------- processors


@dataclass(frozen=True)
class Processor:
    """What a processor offers to a network.

    The number of cores is not among it: every engine shares its work among
    `torch.get_num_threads()` threads.
    """

    lanes: int
    """Floats in a vector of the kernels as numba compiles them (16 with AVX-512, 8 with AVX2 or on
    ARM), 0 where it has no instruction that multiplies and adds."""

    amx: bool
    """Whether torch's convolutions multiply bfloat16 in tiles, many times as fast as float32."""

    onednn: bool
    """Whether torch was built with oneDNN."""

    onednn_bfloat16: bool
    """Whether oneDNN computes in bfloat16."""

    def has_onednn_for(self, device: torch.device) -> bool:
        """Whether weights on a device can be laid out for oneDNN, of a layer of any kind."""
        return device.type == "cpu" and self.onednn

    def arithmetic(self, dtype: torch.dtype, device: torch.device) -> torch.dtype:
        """Choose what torch computes in where the numbers between layers are of `dtype`.

        Where oneDNN cannot multiply bfloat16, torch does it in plain loops, which take several
        times as long as rounding what goes into and comes out of float32.
        """
        is_emulated = self.has_onednn_for(device) and not self.onednn_bfloat16
        return torch.float32 if is_emulated and dtype == torch.bfloat16 else dtype


@cache
def detected(with_kernels: bool) -> Processor:
    """Return what is here.

    Args:
        with_kernels: Whether to look at the kernels, too: that imports the compiler, which small
            networks do not need. Otherwise `lanes` is 0.
    """
    lanes = 0
    if with_kernels:
        from rllib_minestudio.models.kernels.vectors import FUSED_LANES

        lanes = FUSED_LANES
    onednn = torch.backends.mkldnn.is_available()
    return Processor(
        lanes=lanes,
        amx=torch.cpu._is_amx_tile_supported(),
        onednn=onednn,
        onednn_bfloat16=onednn and torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    )


# ---------------------------------------------------------------------------- work


class Convolution(NamedTuple):
    """A 3x3 convolution of the same size."""

    channels: tuple[int, int]
    """In and out."""

    dtype: torch.dtype
    """Of the images; that of the weights is `weight_dtype`."""

    weight_dtype: torch.dtype = torch.float32
    device: torch.device = CPU
    has_bias: bool = False
    pixels: int | None = None
    """Of all frames together; None where weights are laid out once for many calls."""

    has_gradients: bool = False
    """Whether gradients follow."""

    is_traced: bool = False
    """Whether torch.compile is looking."""


class ConvolutionStack(NamedTuple):
    """[Norm] -> convolution -> max pool and ReLU -> norm -> blocks of norm -> convolution -> ReLU.

    Two of the latter in a block, whose input is added to its output.
    """

    channels: tuple[int, int]
    """In and out; those of bytes are `COLOURS`."""

    dtype: torch.dtype = torch.float32
    """Of the images on a GPU."""

    weight_dtype: torch.dtype = torch.float32
    device: torch.device = CPU
    frames: int | None = None
    """None where weights are laid out once for many calls."""

    is_traced: bool = False
    """Whether torch.compile is looking."""


Work = Convolution | ConvolutionStack

Parameters = Sequence[Tensor | None]


class ConvolutionLayer(NamedTuple):
    """The weights of some work, and what else its numbers depend on."""

    parameters: Parameters
    """Filters [C, C_in, 3, 3] and bias [C] of the (first) convolution, and perhaps weight and bias
    of the norm before it; of a stack also those of the norm after the pool, then per further
    convolution weight and bias of its norm, and its filters. None is for what there is not."""

    epsilon: float = 0.0
    """What norms add to the variance."""

    relu: bool = False
    """Whether a ReLU follows the convolution; those of a stack are fixed."""

    @property
    def filters(self) -> Tensor:
        """Of the (first) convolution."""
        first = self.parameters[0]
        assert first is not None
        return first

    def copied(self) -> ConvolutionLayer:
        """The same with weights of its own."""
        copies = [None if each is None else each.detach().clone() for each in self.parameters]
        return self._replace(parameters=copies)


# ---------------------------------------------------------------------------- engines


class Engine(ABC):
    """Computes work of one kind."""

    name: str
    by_numba = False
    """Whether its kernels are numba's, so that `Processor.lanes` matters."""

    reads_bytes = False
    """Whether images may come as they are: [N, H, W, 3] uint8."""

    def __repr__(self) -> str:
        return self.name

    @abstractmethod
    def why_not(self, work: Any) -> str:
        """Return why this work is not for the engine on any processor; empty if it is for it."""

    def is_fast(self, work: Any, processor: Processor) -> bool:
        """Whether it is worth taking on a processor, for work that it suits."""
        return True

    def is_ready(self, work: Any) -> bool:
        """Whether it can start; kernels are compiled when they are asked for the first time."""
        return True

    @abstractmethod
    def pack(self, layer: ConvolutionLayer, dtype: torch.dtype, input_scale: float = 1.0) -> Any:
        """Lay weights out for many calls of `forward`.

        Args:
            layer: The weights; what is already laid out as it should be is not copied.
            dtype: Of the images between layers; engines that compute in another say so.
            input_scale: Multiplies the input, at no cost, where the (first) convolution has no
                norm. An engine that reads bytes scales these itself.
        """

    @abstractmethod
    def forward(self, x: Tensor, packed: Any) -> Tensor:
        """Compute outputs without gradients.

        Args:
            x: [N, C_in, H, W], or bytes if it `reads_bytes`.
            packed: From `pack`.

        Returns:
            [N, C, H, W] of a convolution; [N, C, H / 2, W / 2], rounded up, of a stack.
        """

    def compute(self, x: Tensor, layer: ConvolutionLayer, dtype: torch.dtype) -> Tensor:
        """Compute outputs of weights as they are now; shapes are those of `forward`."""
        return self.forward(x, self.pack(layer, dtype))


class Kept(NamedTuple):
    """What gradients need of a forward pass, besides the parameters."""

    tensors: Sequence[Tensor | None]
    rest: Any = None


class EngineWithGradients(Engine):
    """An engine whose gradients are its own as well."""

    def as_read(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """The images as the kernels read them; gradients go through this by torch's hands."""
        return x

    @abstractmethod
    def forward_keeping(self, x: Tensor, layer: ConvolutionLayer) -> tuple[Tensor, Kept]:
        """As `forward`, of weights as they are now, with all that `backward` needs.

        Args:
            x: From `as_read`.
            layer: The weights.
        """

    @abstractmethod
    def backward(
        self, dy: Tensor, kept: Kept, layer: ConvolutionLayer, needs_dx: bool, needs_weights: bool
    ) -> tuple[Tensor | None, Sequence[Tensor | None]]:
        """Compute gradients.

        Args:
            dy: Of the outputs.
            kept: From `forward_keeping`.
            layer: The weights, unchanged since.
            needs_dx: Whether the gradient of the input is wanted.
            needs_weights: Whether that of any weight is.

        Returns:
            The gradient of the input, and that of each parameter.
        """

    def compute(self, x: Tensor, layer: ConvolutionLayer, dtype: torch.dtype) -> Tensor:
        """As of any engine, with its own gradients where some are asked for."""
        tensors = (x, *(each for each in layer.parameters if each is not None))
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            x = self.as_read(x, dtype)
            y: Tensor = _Differentiable.apply(self, x, layer.epsilon, layer.relu, *layer.parameters)
            return y
        return super().compute(x, layer, dtype)


class _Differentiable(torch.autograd.Function):
    """Lets autograd ask an engine for its gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        engine: EngineWithGradients,
        x: Tensor,
        epsilon: float,
        relu: bool,
        *parameters: Tensor | None,
    ) -> Tensor:
        y, kept = engine.forward_keeping(x, ConvolutionLayer(parameters, epsilon, relu))
        # The parameters, too, so that autograd notices if they are changed before `backward`.
        ctx.save_for_backward(*kept.tensors, *parameters)
        ctx.count, ctx.rest = len(kept.tensors), kept.rest
        ctx.engine, ctx.options = engine, (epsilon, relu)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        kept = Kept(tensors[: ctx.count], ctx.rest)
        layer = ConvolutionLayer(tensors[ctx.count :], *ctx.options)
        _, needs_dx, _, _, *of_weights = ctx.needs_input_grad
        dx, gradients = ctx.engine.backward(dy, kept, layer, needs_dx, any(of_weights))
        return None, dx, None, None, *gradients


@cache
def is_compiled(code: MachineCode) -> bool:
    """Compile kernels if that is to be done; False if they cannot be kept."""
    try:
        code.compile_once()
    except OSError as error:
        _logger.warning("Convolutions stay slow: their code cannot be kept (%s).", error)
        return False
    return True


def convolve_by_torch(x: Tensor, layer: ConvolutionLayer) -> Tensor:
    """[N, C_in, H, W] -> [N, C, H, W], with torch's own gradients; the layer has no norm."""
    filters, bias = layer.parameters
    assert filters is not None
    y = F.conv2d(x, filters, bias, padding=1)
    return F.relu(y, inplace=True) if layer.relu else y
