"""Stacks on NVIDIA GPUs: cuDNN's convolutions, and kernels for everything between them.

torch normalises a frame in one block of threads, copies it out of channels-last layout and back,
and passes through memory once for every ReLU, pool, norm and sum. The kernels in `cuda.cu` combine
these. `Program` compiles them with NVRTC, which comes with torch, so that users need no compiler;
`_forward` and `_backward` call them in order.

Sums are float32; images between the layers have the network's precision. The last bit may decide a
ReLU or a pool differently from torch; outputs and gradients are consistent nevertheless.

Images are [N, C, H, W] in channels-last layout, of float32 or bfloat16. Suffixes beyond the usual
axes: p PARTS of a frame, 3 moments, 2 mean and scale, or sums.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rllib_minestudio.models.kernels.engines import (
    COLOURS,
    ConvolutionLayer,
    ConvolutionStack,
    EngineWithGradients,
    Kept,
)

_logger = logging.getLogger(__name__)

CHANNELS = 8
"""A stack's channels are a multiple of this: bfloat16 numbers in the 16 bytes of a read."""

BYTES = 16
"""Bytes that a thread reads at once."""

CONVOLUTION = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1]}

PER_CONVOLUTION = 3
"""Parameters per convolution: weight and bias of the norm, filters."""


class Cuda(EngineWithGradients):
    """Outputs and gradients of whole stacks."""

    name = "CUDA"

    def why_not(self, work: ConvolutionStack) -> str:
        """Return a reason unless the channels fill whole reads."""
        channels_in, channels = work.channels
        if work.device.type != "cuda":
            return "it is for GPUs"
        if work.weight_dtype != torch.float32:
            return f"weights must be float32, not {work.weight_dtype}"
        if work.dtype not in (torch.float32, torch.bfloat16):
            return f"images must be float32 or bfloat16, not {work.dtype}"
        if channels % CHANNELS or (channels_in % CHANNELS and channels_in != COLOURS):
            return f"channels must be multiples of {CHANNELS}"
        return "there are no frames" if work.frames == 0 else ""

    def is_ready(self, work: ConvolutionStack) -> bool:
        """Compile the kernels for images of this dtype, once per process."""
        return program(work.device, work.dtype) is not None

    def pack(
        self, layer: ConvolutionLayer, dtype: torch.dtype, input_scale: float = 1.0
    ) -> CudaWeights:
        """Copy filters that are in another layout or dtype."""
        first, first_bias, *first_norm = layer.parameters[:4]
        pooled_norm, of_blocks = layer.parameters[4:6], layer.parameters[6:]
        assert first is not None
        if input_scale != 1.0:
            first = first.detach() * input_scale

        def filters(weight: Any) -> Tensor:
            laid_out: Tensor = weight.detach().to(dtype, memory_format=torch.channels_last)
            return laid_out

        def norm(pair: Sequence[Any]) -> Norm:
            weight, bias = pair
            return Norm(weight.detach(), bias.detach(), layer.epsilon)

        convolutions = [
            (norm(of_blocks[i : i + 2]), filters(of_blocks[i + 2]))
            for i in range(0, len(of_blocks), PER_CONVOLUTION)
        ]
        return CudaWeights(
            filters(first),
            None if first_bias is None else first_bias.detach().to(dtype),
            None if first_norm[0] is None else norm(first_norm),
            norm(pooled_norm),
            [(*a, *b) for a, b in zip(convolutions[::2], convolutions[1::2], strict=True)],
        )

    @torch.no_grad()
    def forward(self, x: Tensor, packed: CudaWeights) -> Tensor:
        """Compute outputs of [N, C_in, H, W] of any dtype; there may be no frames."""
        x = x.to(packed.first.dtype)
        frames, _, height, width = x.shape
        if not frames:
            return x.new_empty(0, len(packed.first), (height + 1) // 2, (width + 1) // 2)
        return _forward(x, packed)[0]

    def as_read(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return images in the dtype of those between the layers."""
        return x.to(dtype)

    def forward_keeping(self, x: Tensor, layer: ConvolutionLayer) -> tuple[Tensor, Kept]:
        """Keep the activations between the layers, and the packed weights."""
        packed = self.pack(layer, x.dtype)
        y, activations = _forward(x, packed, keep=True)
        assert activations is not None
        return y, Kept(activations.flat(), packed)

    def backward(
        self, dy: Tensor, kept: Kept, layer: ConvolutionLayer, needs_dx: bool, needs_weights: bool
    ) -> tuple[Tensor | None, Sequence[Tensor | None]]:
        """Compute all weights' gradients in one pass, whichever are needed."""
        tensors = [tensor for tensor in kept.tensors if tensor is not None]
        activations = Activations.of(tensors, len(kept.rest.blocks))
        return _backward(dy, activations, kept.rest, needs_dx=needs_dx)


CUDA = Cuda()


# ---------------------------------------------------------------------------- a pass over a stack


class Norm(NamedTuple):
    """A group norm of one group."""

    weight: Tensor
    """[C] float32."""

    bias: Tensor
    """[C] float32."""

    epsilon: float


class CudaWeights(NamedTuple):
    """A stack's parameters, filters in the images' dtype and layout."""

    first: Tensor
    """[C, C_in, 3, 3]."""

    first_bias: Tensor | None
    """[C]."""

    first_norm: Norm | None
    pooled_norm: Norm
    blocks: list[tuple[Norm, Tensor, Norm, Tensor]]
    """Of each residual block: norm and filters of the first convolution, and of the second."""


class Normed(NamedTuple):
    """What the gradients of a norm and the convolution after it need."""

    x: Tensor
    """The norm's input."""

    stats_n2: Tensor
    y: Tensor
    """The norm's output, and the convolution's input."""


class Activations(NamedTuple):
    """What gradients need from a forward pass."""

    image: Tensor
    """The first convolution's input."""

    taps: Tensor
    """[N, H / 2, W / 2, C] uint8: which pixel of a window was the largest."""

    outputs: list[Tensor]
    """Of each block's second convolution, before the ReLU."""

    norms: list[Normed]
    """All norms in the order of the pass."""

    def flat(self) -> list[Tensor]:
        """Return all tensors."""
        of_norms = [tensor for normed in self.norms for tensor in normed]
        return [self.image, self.taps, *self.outputs, *of_norms]

    @classmethod
    def of(cls, tensors: Sequence[Tensor], blocks: int) -> Activations:
        """Undo `flat`, for a stack with this many residual blocks."""
        image, taps, *rest = tensors
        outputs, of_norms = rest[:blocks], rest[blocks:]
        size = len(Normed._fields)
        norms = [Normed(*of_norms[i : i + size]) for i in range(0, len(of_norms), size)]
        return cls(image, taps, outputs, norms)


def _forward(
    x: Tensor, weights: CudaWeights, *, keep: bool = False
) -> tuple[Tensor, Activations | None]:
    """Compute a stack.

    Args:
        x: [N, C_in, H, W].
        weights: The stack's.
        keep: Whether gradients follow.

    Returns:
        [N, C, (H + 1) / 2, (W + 1) / 2], and what `_backward` needs.
    """
    with torch.cuda.device(x.device):
        kernels = _Kernels(x.device, x.dtype)
        x, norms, outputs = _channels_last(x), [], []
        if weights.first_norm is not None:
            norms.append(kernels.normalise(x, kernels.moments(x), weights.first_norm))
            x = norms[0].y
        y, taps, moments = kernels.pool(_convolved(x, weights.first, weights.first_bias), keep)
        pooled = kernels.normalise(y, moments, weights.pooled_norm)
        y, moments = pooled.y, kernels.moments(pooled.y)
        norms.append(pooled)
        for norm0, filters0, norm1, filters1 in weights.blocks:
            normed0 = kernels.normalise(y, moments, norm0)
            y0, moments = kernels.positive_(_convolved(normed0.y, filters0))
            normed1 = kernels.normalise(y0, moments, norm1)
            y1 = _convolved(normed1.y, filters1)
            y, moments = kernels.positive_added(y1, y)
            if keep:  # else their memory is free for reuse
                norms += [normed0, normed1]
                outputs.append(y1)
        return y, Activations(x, taps, outputs, norms) if keep else None


def _backward(
    dy: Tensor, kept: Activations, weights: CudaWeights, *, needs_dx: bool
) -> tuple[Tensor | None, list[Tensor | None]]:
    """Compute a stack's gradients.

    Args:
        dy: [N, C, H / 2, W / 2], gradient of the output.
        kept: From the forward pass.
        weights: Those of the forward pass.
        needs_dx: Whether the gradient of the input is wanted.

    Returns:
        That gradient, and those of the parameters: filters and bias of the first convolution,
        weight and bias of its norm, of the norm after the pool, then norm and filters of each
        convolution in the blocks. Absent ones are None.
    """
    with torch.cuda.device(dy.device):
        kernels = _Kernels(dy.device, dy.dtype)
        dy = _channels_last(dy)
        norms, of_blocks = list(kept.norms), list[Tensor | None]()
        for block, y1 in zip(reversed(weights.blocks), reversed(kept.outputs), strict=True):
            norm0, filters0, norm1, filters1 = block
            normed1, normed0 = norms.pop(), norms.pop()
            d = kernels.positive_backward(dy, y1)
            d, dfilters1, _ = _convolution_gradients(d, normed1.y, filters1)
            d, *dnorm1 = kernels.norm_backward(d, normed1, norm1, relu=True)
            d, dfilters0, _ = _convolution_gradients(d, normed0.y, filters0)
            dy, *dnorm0 = kernels.norm_backward(d, normed0, norm0, skip=dy)
            of_blocks = [*dnorm0, dfilters0, *dnorm1, dfilters1, *of_blocks]
        d, *dpooled = kernels.norm_backward(dy, norms.pop(), weights.pooled_norm, relu=True)
        d = kernels.pool_backward(d, kept.taps, kept.image)
        d, *dfirst = _convolution_gradients(
            d,
            kept.image,
            weights.first,
            needs_dx=needs_dx or weights.first_norm is not None,
            has_bias=weights.first_bias is not None,
        )
        dnorm: list[Tensor | None] = [None, None]
        if weights.first_norm is not None:
            d, *dnorm = kernels.norm_backward(d, norms.pop(), weights.first_norm)
        return d if needs_dx else None, [*dfirst, *dnorm, *dpooled, *of_blocks]


class _Kernels:
    """The kernels of `cuda.cu`, called with tensors."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        loaded = program(device, dtype)
        assert loaded is not None, "this path is taken only where they could be compiled"
        self._program: Program = loaded

    def moments(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, PARTS, 3]."""
        return self._positive(x, None, None, relu=False)

    def positive_(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Apply a ReLU in place; return the result and its moments."""
        return x, self._positive(x, None, x, relu=True)

    def positive_added(self, x: Tensor, skip: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of the positive part and `skip`, and its moments."""
        y = torch.empty_like(x)
        return y, self._positive(x, skip, y, relu=True)

    def _positive(self, x: Tensor, skip: Tensor | None, y: Tensor | None, relu: bool) -> Tensor:
        moments_np3 = _numbers(x, len(x), PARTS, 3)
        arguments = x, skip, y, moments_np3, _vectors(x), int(relu)
        self._program.launch("positive", len(x), *arguments)
        return moments_np3

    def pool(self, x: Tensor, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Return max pool and ReLU; taps [N, H / 2, W / 2, C] (empty unless `keep`); moments."""
        frames, channels, height, width = x.shape
        rows, columns = (height + 1) // 2, (width + 1) // 2
        y = torch.empty(
            (frames, channels, rows, columns),
            dtype=x.dtype,
            device=x.device,
            memory_format=torch.channels_last,
        )
        shape = (frames, rows, columns, channels) if keep else (0,)
        taps = torch.empty(shape, dtype=torch.uint8, device=x.device)
        moments_np3 = _numbers(x, frames, PARTS, 3)
        arguments = x, y, taps if keep else None, moments_np3, height, width, _groups(x)
        self._program.launch("pool", frames, *arguments)
        return y, taps, moments_np3

    def normalise(self, x: Tensor, moments_np3: Tensor, norm: Norm) -> Normed:
        """Apply a group norm to an input whose moments are known."""
        y, stats_n2 = torch.empty_like(x), _numbers(x, len(x), 2)
        arguments = x, moments_np3, norm.weight, norm.bias, y, stats_n2
        self._program.launch("normalise", len(x), *arguments, _vectors(x), _groups(x), norm.epsilon)
        return Normed(x, stats_n2, y)

    def norm_backward(
        self,
        dy: Tensor,
        normed: Normed,
        norm: Norm,
        *,
        relu: bool = False,
        skip: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of input (through a ReLU before it if `relu`), weight and bias."""
        x, stats_n2, _ = normed
        dy = _channels_last(dy)
        frames, channels, height, width = x.shape
        sums_np2c = _numbers(x, frames, PARTS, 2, channels)
        sums_n2c, means_n2 = _numbers(x, frames, 2, channels), _numbers(x, frames, 2)
        launch, groups = self._program.launch, _groups(x)
        launch("norm_sums", frames, dy, x, stats_n2, sums_np2c, height * width, groups)
        numbers = float(channels * height * width)
        arguments = sums_np2c, norm.weight, sums_n2c, means_n2, channels, numbers
        launch("norm_means", frames, *arguments, parts=1)
        dx = torch.empty_like(x)
        gradients = dy, x, stats_n2, means_n2, norm.weight, skip, dx
        launch("norm_backward", frames, *gradients, _vectors(x), groups, int(relu))
        dweight, dbias = sums_n2c.sum(0)
        return dx, dweight, dbias

    def positive_backward(self, dy: Tensor, x: Tensor) -> Tensor:
        """Return the gradient of a ReLU's input `x`."""
        dx = torch.empty_like(x)
        self._program.launch("positive_backward", len(x), dy, x, dx, _vectors(x))
        return dx

    def pool_backward(self, dy: Tensor, taps: Tensor, image: Tensor) -> Tensor:
        """Return the gradient of the pool's input, which has the sides of `image`."""
        frames, channels, height, width = len(dy), dy.shape[1], *image.shape[2:]
        dx = torch.empty(
            (frames, channels, height, width),
            dtype=dy.dtype,
            device=dy.device,
            memory_format=torch.channels_last,
        )
        self._program.launch("pool_backward", frames, dy, taps, dx, height, width, _groups(dy))
        return dx


def _convolved(x: Tensor, filters: Tensor, bias: Tensor | None = None) -> Tensor:
    return _channels_last(torch.nn.functional.conv2d(x, filters, bias, padding=1))


def _convolution_gradients(
    dy: Tensor, x: Tensor, filters: Tensor, *, needs_dx: bool = True, has_bias: bool = False
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients of input (if needed), filters and bias (if any), the latter two in float32."""
    dx, dfilters, dbias = torch.ops.aten.convolution_backward(
        dy,
        x,
        filters,
        [len(filters)] if has_bias else None,
        **CONVOLUTION,
        transposed=False,
        output_padding=[0, 0],
        groups=1,
        output_mask=[needs_dx, True, has_bias],
    )
    return dx, dfilters.float(), None if dbias is None else dbias.float()


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _numbers(beside: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=beside.device)


def _vectors(x: Tensor) -> int:
    """Vectors of a frame."""
    return x[0].numel() * x.element_size() // BYTES


def _groups(x: Tensor) -> int:
    """Vectors of a pixel."""
    return x.shape[1] * x.element_size() // BYTES


# ---------------------------------------------------------------------------- the program
# CUDA C++ compiled by NVRTC and launched on torch's streams.

PARTS, THREADS = 32, 256
"""As in `cuda.cu`."""

_DEFINES: dict[torch.dtype, tuple[bytes, ...]] = {
    torch.float32: (),
    torch.bfloat16: (b"-DBFLOAT16",),
}
Argument = Tensor | int | float | None


class Program:
    """The kernels for images of one dtype, loaded on one device."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        """Compile and load the kernels, which takes a second.

        Raises:
            OSError: There is no NVRTC, or it or the driver reports an error.
        """
        self._library = _library()
        with torch.cuda.device(device):
            torch.cuda.current_stream(device).synchronize()  # creates the context to load into
            code = _compiled(self._library, device, _DEFINES[dtype])
            self._module = ctypes.c_void_p()
            self._check(self._library.cuModuleLoadData(ctypes.byref(self._module), code), "load")
        self._functions: dict[str, ctypes.c_void_p] = {}

    def launch(self, name: str, frames: int, *arguments: Argument, parts: int = PARTS) -> None:
        """Run a kernel on the current stream of the device, which must be the current one.

        Args:
            name: The kernel's name.
            frames: The range of `blockIdx.x`.
            *arguments: The kernel's arguments: contiguous tensors, None for no tensor, int, and
                float for float32.
            parts: The range of `blockIdx.y`.

        Raises:
            OSError: The driver reports an error.
        """
        values = [_argument(argument) for argument in arguments]
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        code = self._library.cuLaunchKernel(
            self._function(name), frames, parts, 1, THREADS, 1, 1, 0, stream, addresses, None
        )
        self._check(code, name)

    def _function(self, name: str) -> ctypes.c_void_p:
        if name not in self._functions:
            function = ctypes.c_void_p()
            code = self._library.cuModuleGetFunction(
                ctypes.byref(function), self._module, name.encode()
            )
            self._check(code, name)
            self._functions[name] = function
        return self._functions[name]

    def _check(self, code: int, what: str) -> None:
        if code != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(code, ctypes.byref(text))
            raise OSError(f"CUDA kernels, {what}: {(text.value or b'').decode()} ({code}).")


@cache
def program(device: torch.device, dtype: torch.dtype) -> Program | None:
    """Return the kernels on a device, compiled at the first call; None if that fails."""
    try:
        return Program(device, dtype)
    except OSError as error:
        _logger.warning(
            "VPT's convolutions on %s are left to torch, which is slower: %s", device, error
        )
        return None


def _argument(argument: Argument) -> ctypes._SimpleCData[Any]:
    if isinstance(argument, Tensor):
        return ctypes.c_void_p(argument.data_ptr())
    if argument is None:
        return ctypes.c_void_p(None)
    return ctypes.c_float(argument) if isinstance(argument, float) else ctypes.c_int(argument)


@cache
def _library() -> ctypes.CDLL:
    """Load torch's own library that depends on NVRTC and the driver: it finds and exposes both.

    Raises:
        OSError: It is not there, or torch is built for AMD's GPUs.
    """
    if torch.version.hip is not None:
        raise OSError("the kernels are for NVIDIA's GPUs, but this torch is built for AMD's.")
    folder = Path(torch.__file__).parent / "lib"
    names = ("libcaffe2_nvrtc.so", "caffe2_nvrtc.dll")
    for path in (folder / name for name in names):
        if path.exists():
            return ctypes.CDLL(str(path))
    raise OSError(f"{folder}: holds neither of {', '.join(names)}.")


def _compiled(
    library: ctypes.CDLL, device: torch.device, defines: tuple[bytes, ...]
) -> ctypes.Array[ctypes.c_char]:
    """Compile the kernels to machine code for the device.

    Raises:
        OSError: Compilation fails; contains NVRTC's log.
    """
    source = files(__package__).joinpath("cuda.cu").read_bytes()
    major, minor = torch.cuda.get_device_capability(device)
    options = (b"--gpu-architecture=sm_%d%d" % (major, minor), b"--std=c++17", *defines)
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source, b"cuda.cu", 0, None, None)
    try:
        code = library.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*options)
        )
        if code != 0:
            raise OSError(f"NVRTC: error {code}: {_read(library, program, 'ProgramLog').value!r}")
        return _read(library, program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> ctypes.Array[ctypes.c_char]:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    return text
