"""CUDA C++ compiled by NVRTC and launched on torch's streams."""

from __future__ import annotations

import ctypes
import logging
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_logger = logging.getLogger(__name__)

PARTS, THREADS = 32, 256
"""As in `kernels.cu`."""

_DEFINES: dict[torch.dtype, tuple[bytes, ...]] = {
    torch.float32: (),
    torch.bfloat16: (b"-DBFLOAT16",),
}
Argument = Tensor | int | float | None


class Program:
    """The kernels for images of one dtype, loaded on one device."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        """Compiles them, which takes a second.

        Raises:
            OSError: If there is no NVRTC, or it or the driver refuses.
        """
        self._library = _library()
        with torch.cuda.device(device):
            torch.cuda.current_stream(device).synchronize()  # creates the context to load into
            code = _compiled(self._library, device, _DEFINES[dtype])
            self._module = ctypes.c_void_p()
            self._check(self._library.cuModuleLoadData(ctypes.byref(self._module), code), "load")
        self._functions: dict[str, ctypes.c_void_p] = {}

    def launch(self, name: str, frames: int, *arguments: Argument, parts: int = PARTS) -> None:
        """Runs a kernel on the current stream of the device, which must be the current one.

        Args:
            name: Of the kernel.
            frames: `blockIdx.x` goes through them.
            *arguments: Of the kernel: tensors without gaps, None for no tensor, int, and float
                for float32.
            parts: `blockIdx.y` goes through them.

        Raises:
            OSError: If the driver refuses.
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
    """The kernels on a device, compiled at the first call; None where they cannot be."""
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
    """The library of torch's own that needs NVRTC and the driver: it finds both, and shows both.

    Raises:
        OSError: If it is not there, or the GPU is not NVIDIA's.
    """
    if torch.version.hip is not None:
        raise OSError("they are for NVIDIA's GPUs, and this torch is built for AMD's.")
    folder = Path(torch.__file__).parent / "lib"
    names = ("libcaffe2_nvrtc.so", "caffe2_nvrtc.dll")
    for path in (folder / name for name in names):
        if path.exists():
            return ctypes.CDLL(str(path))
    raise OSError(f"{folder}: holds neither of {', '.join(names)}.")


def _compiled(
    library: ctypes.CDLL, device: torch.device, defines: tuple[bytes, ...]
) -> ctypes.Array[ctypes.c_char]:
    """Machine code for the device.

    Raises:
        OSError: With NVRTC's log.
    """
    source = files(__package__).joinpath("kernels.cu").read_bytes()
    major, minor = torch.cuda.get_device_capability(device)
    options = (b"--gpu-architecture=sm_%d%d" % (major, minor), b"--std=c++17", *defines)
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
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
