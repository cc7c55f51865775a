"""Engines: the common interface of everything that computes convolutions.

An engine computes one of two kinds of work: a stack of convolutions with everything between them
(`ConvolutionStack`), or a single 3x3 convolution (`Convolution`). Its methods are

    why_not     why work does not suit it, if it does not
    is_fast     whether it is worth using on a processor
    is_ready    whether it can start, after compiling its kernels if necessary
    pack        lays out weights
    forward     outputs, without gradients
    compute     outputs of the present weights, with gradients where needed

An `EngineWithGradients` computes gradients by its own `forward_keeping` and `backward`.
`engine_choice` lists the engines and chooses among them.
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
    from rllib_minestudio.models.kernels.compilation import MachineCode

_logger = logging.getLogger(__name__)

COLOURS = 3
"""Channels of an image."""

CPU = torch.device("cpu")

# ---------------------------------------------------------------------------- processors


@dataclass(frozen=True)
class Processor:
    """What engines need to know about a processor.

    Not the number of cores: every engine divides its work among `torch.get_num_threads()` threads.
    """

    lanes: int
    """Floats in a vector of the numba kernels (16 with AVX-512, 8 with AVX2 or on ARM); 0 without a
    fused multiply-add instruction."""

    amx: bool
    """Whether torch's convolutions multiply bfloat16 in tiles, many times as fast as float32."""

    onednn: bool
    """Whether torch was built with oneDNN."""

    onednn_bfloat16: bool
    """Whether oneDNN computes in bfloat16."""

    def has_onednn_for(self, device: torch.device) -> bool:
        """Whether weights of any layer on a device can be laid out for oneDNN."""
        return device.type == "cpu" and self.onednn

    def arithmetic(self, dtype: torch.dtype, device: torch.device) -> torch.dtype:
        """Return the dtype in which torch should compute between layers of `dtype`.

        Where oneDNN cannot multiply bfloat16, torch does it in plain loops, which take several
        times as long as converting to float32 and back.
        """
        is_emulated = self.has_onednn_for(device) and not self.onednn_bfloat16
        return torch.float32 if is_emulated and dtype == torch.bfloat16 else dtype


@cache
def detected(with_kernels: bool) -> Processor:
    """Return the processor of this machine.

    Args:
        with_kernels: Whether to detect `lanes`, which imports the compiler; otherwise it is 0.
    """
    lanes = 0
    if with_kernels:
        from rllib_minestudio.models.kernels.compilation import FUSED_LANES

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
    """The images' dtype."""

    weight_dtype: torch.dtype = torch.float32
    device: torch.device = CPU
    has_bias: bool = False
    pixels: int | None = None
    """Pixels of all frames together; None where weights are laid out once for many calls."""

    has_gradients: bool = False
    """Whether gradients follow."""

    is_traced: bool = False
    """Whether torch.compile is tracing."""


class ConvolutionStack(NamedTuple):
    """[Norm] -> convolution -> max pool and ReLU -> norm -> residual blocks.

    A block is norm -> convolution -> ReLU, twice; its input is added to its output.
    """

    channels: tuple[int, int]
    """In and out; images of bytes have `COLOURS`."""

    dtype: torch.dtype = torch.float32
    """The images' dtype on a GPU."""

    weight_dtype: torch.dtype = torch.float32
    device: torch.device = CPU
    frames: int | None = None
    """The number of frames; None where weights are laid out once for many calls."""

    is_traced: bool = False
    """Whether torch.compile is tracing."""


Work = Convolution | ConvolutionStack

Parameters = Sequence[Tensor | None]


class ConvolutionLayer(NamedTuple):
    """The weights of some work, and everything else that its results depend on."""

    parameters: Parameters
    """Filters [C, C_in, 3, 3] and bias [C] of the (first) convolution, then optionally weight and
    bias of the norm before it. A stack adds those of the norm after the pool, then for each further
    convolution the weight and bias of its norm, and its filters. Absent parameters are None."""

    epsilon: float = 0.0
    """What norms add to the variance."""

    relu: bool = False
    """Whether a ReLU follows the convolution; those of a stack are fixed."""

    @property
    def filters(self) -> Tensor:
        """The filters of the (first) convolution."""
        first = self.parameters[0]
        assert first is not None
        return first

    def copied(self) -> ConvolutionLayer:
        """Return a copy with its own weights."""
        copies = [None if each is None else each.detach().clone() for each in self.parameters]
        return self._replace(parameters=copies)


# ---------------------------------------------------------------------------- engines


class Engine(ABC):
    """Computes work of one kind."""

    name: str
    by_numba = False
    """Whether its kernels are numba's, so that `Processor.lanes` matters."""

    reads_bytes = False
    """Whether images may be bytes, [N, H, W, 3] uint8."""

    def __repr__(self) -> str:
        return self.name

    @abstractmethod
    def why_not(self, work: Any) -> str:
        """Return why work does not suit the engine on any processor; empty if it does."""

    def is_fast(self, work: Any, processor: Processor) -> bool:
        """Whether the engine is worth using on a processor, for work that suits it."""
        return True

    def is_ready(self, work: Any) -> bool:
        """Whether the engine can start; the first call compiles its kernels."""
        return True

    @abstractmethod
    def pack(self, layer: ConvolutionLayer, dtype: torch.dtype, input_scale: float = 1.0) -> Any:
        """Lay weights out for many calls of `forward`.

        Args:
            layer: The weights; those that are in the right layout already are not copied.
            dtype: The dtype between layers; engines that compute in another one say so.
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
        """Compute outputs of the present weights; shapes are those of `forward`."""
        return self.forward(x, self.pack(layer, dtype))


class Kept(NamedTuple):
    """What gradients need from a forward pass, besides the parameters."""

    tensors: Sequence[Tensor | None]
    rest: Any = None


class EngineWithGradients(Engine):
    """An engine that also computes gradients itself."""

    def as_read(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return images as the kernels read them; torch differentiates this step."""
        return x

    @abstractmethod
    def forward_keeping(self, x: Tensor, layer: ConvolutionLayer) -> tuple[Tensor, Kept]:
        """Compute outputs of the present weights, and keep what `backward` needs.

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
            dy: Gradient of the outputs.
            kept: From `forward_keeping`.
            layer: The weights, unchanged since.
            needs_dx: Whether the gradient of the input is wanted.
            needs_weights: Whether that of any weight is wanted.

        Returns:
            The gradient of the input, and that of each parameter.
        """

    def compute(self, x: Tensor, layer: ConvolutionLayer, dtype: torch.dtype) -> Tensor:
        """Compute outputs of the present weights, with the engine's own gradients where needed."""
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
    """Compile kernels if necessary; return False if their code cannot be stored."""
    try:
        code.compile_once()
    except OSError as error:
        _logger.warning("Convolutions stay slow: their code cannot be stored (%s).", error)
        return False
    return True


def convolve_by_torch(x: Tensor, layer: ConvolutionLayer) -> Tensor:
    """[N, C_in, H, W] -> [N, C, H, W], with torch's own gradients; the layer has no norm."""
    filters, bias = layer.parameters
    assert filters is not None
    y = F.conv2d(x, filters, bias, padding=1)
    return F.relu(y, inplace=True) if layer.relu else y
