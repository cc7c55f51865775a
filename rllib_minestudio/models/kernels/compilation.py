"""Compilation of kernels: vectors of floats as a type, once per machine, in teams of threads.

LLVM vectorises plain loops over arrays only where it can prove that they do not overlap, and never
keeps a block of sums in registers. Written with vectors, kernels come within a few percent of a
core's peak. Rounding is fixed too: nothing is contracted or reordered, so that every compilation of
a kernel gives the same bits.

Arrays are one-dimensional and contiguous: float32, or int16 holding the bits of bfloat16.
"""

from __future__ import annotations

import ctypes
import logging
import operator
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

from rllib_minestudio.foundation import machine_code
from rllib_minestudio.foundation.machine_code import MachineTarget, target


def fused_lanes(target: MachineTarget) -> int:
    """Return how many floats a vector should have for fused multiply-add; 0 if there is none.

    In that case LLVM would call a function for each number in `winograd.multiply`, which is correct
    but takes 20 times as long as torch.
    """
    if target.has("avx512f"):
        return 16
    return 8 if target.has("fma") or target.architecture in ("aarch64", "arm64") else 0


FUSED_LANES = fused_lanes(target())
"""`fused_lanes` of the target that numba compiles for."""

LANES = FUSED_LANES or 8
"""Floats in a vector; where registers hold fewer, LLVM uses several for one vector."""

FLOAT = ir.FloatType()
FLOATS = ir.VectorType(FLOAT, LANES)
_INTS = ir.VectorType(ir.IntType(32), LANES)
_SHORTS = ir.VectorType(ir.IntType(16), LANES)
NO_FLOATS = ir.Constant(FLOATS, [0.0] * LANES)


class Vector(types.Type):
    """The type of `LANES` float32 numbers in a register."""

    def __init__(self) -> None:
        super().__init__(name=f"float32x{LANES}")


VECTOR = Vector()


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Vector) -> None:
        super().__init__(manager, type_, FLOATS)


# ---------------------------------------------------------------------------- memory


@intrinsic
def load(typing: Any, array: Any, index: Any) -> Any:
    """Return the vector `array[index : index + LANES]`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        array, index = arguments
        if array_type.dtype == types.float32:
            place = pointer_to(context, builder, array_type, array, index, FLOATS)
            return builder.load(place, align=4)
        place = pointer_to(context, builder, array_type, array, index, _SHORTS)
        bits = builder.load(place, align=2)
        return builder.bitcast(builder.shl(builder.zext(bits, _INTS), _ints(16)), FLOATS)

    return VECTOR(array, types.intp), generate


@intrinsic
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Do `array[index : index + LANES] = value`; bfloat16 is rounded to nearest, ties to even."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        array, index, value = arguments
        if array_type.dtype == types.float32:
            place = pointer_to(context, builder, array_type, array, index, FLOATS)
            builder.store(value, place, align=4)
        else:
            place = pointer_to(context, builder, array_type, array, index, _SHORTS)
            builder.store(_to_bfloat16(builder, value), place, align=2)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


def _to_bfloat16(builder: Any, value: Any) -> Any:
    """The numbers' upper halves, rounded; NaNs as the processor makes them stay NaN."""
    bits = builder.bitcast(value, _INTS)
    is_odd = builder.and_(builder.lshr(bits, _ints(16)), _ints(1))
    rounded = builder.add(bits, builder.add(is_odd, _ints(0x7FFF)))
    return builder.trunc(builder.lshr(rounded, _ints(16)), _SHORTS)


def pointer_to(context: Any, builder: Any, array_type: Any, array: Any, index: Any, to: Any) -> Any:
    """Generate the address of `array[index]` as a pointer to `to`."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), to.as_pointer())


def _ints(value: int) -> Any:
    return ir.Constant(_INTS, [value] * LANES)


def spread(builder: Any, scalar: Any) -> Any:
    """Generate a vector of equal numbers."""
    undefined = ir.Constant(FLOATS, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
    return builder.shuffle_vector(first, undefined, _ints(0))


@intrinsic
def zeros(typing: Any) -> Any:
    """Return a vector of zeros."""
    return VECTOR(), lambda context, builder, signature, arguments: NO_FLOATS


# ---------------------------------------------------------------------------- arithmetic


def _elementwise(instruction: str) -> Callable[..., Any]:
    @intrinsic
    def operation(typing: Any, left: Any, right: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, instruction)(*arguments)

        return VECTOR(VECTOR, VECTOR), generate

    return operation


@intrinsic
def _scale(typing: Any, factor: Any, vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fmul(spread(builder, arguments[0]), arguments[1])

    return VECTOR(types.float32, VECTOR), generate


def _overload(symbol: Callable[..., Any], left_type: types.Type, operation: Any) -> None:
    """Define a symbol as `operation` for a left operand of `left_type` and a vector."""
    # Numba compares names and annotations of the two functions; lambdas have no annotations.
    overload(symbol)(
        lambda left, right: (
            (lambda left, right: operation(left, right))
            if left == left_type and right == VECTOR
            else None
        )
    )


_overload(operator.add, VECTOR, _elementwise("fadd"))
_overload(operator.sub, VECTOR, _elementwise("fsub"))
_overload(operator.mul, types.float32, _scale)
_overload(operator.mul, VECTOR, _elementwise("fmul"))


@intrinsic
def maximum(typing: Any, left: Any, right: Any) -> Any:
    """Return the larger number by lane; NaN if either is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(FLOATS, [FLOATS] * 2), f"llvm.maximum.v{LANES}f32"
        )
        return builder.call(function, arguments)

    return VECTOR(VECTOR, VECTOR), generate


@intrinsic
def positive_part(typing: Any, vector: Any) -> Any:
    """Return max(vector, 0); NaN stays NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        is_negative = builder.fcmp_ordered("<", arguments[0], NO_FLOATS)
        return builder.select(is_negative, NO_FLOATS, arguments[0])

    return VECTOR(VECTOR), generate


# ---------------------------------------------------------------------------- sums

_SUMMED = 64
"""Pairs of vectors that are summed in float32; their sums are added in float64."""

_PARTS = 16
"""Parts into which `moments` divides its array."""


@numba.njit
def moments(array: Any, first: int, size: int) -> Any:
    """Return the mean and the variance of `array[first : first + size]`, as float64.

    Squares are of distances from the mean of the first of `_PARTS` parts, which differs from the
    mean by at most sqrt(_PARTS) standard deviations, so that nothing cancels.

    `size` is a multiple of two vectors.
    """
    part = max(size // _PARTS // (2 * LANES), 1) * 2 * LANES
    shift, _ = _sums(array, first, part, np.float32(0))
    shift = np.float32(shift / part)
    total, squares = _sums(array, first, size, shift)
    distance = total / size
    return shift + distance, max(squares / size - distance * distance, 0.0)


@numba.njit
def _sums(array: Any, first: int, size: int, shift: Any) -> Any:
    """Return the sum of differences from `shift`, and of their squares, as float64."""
    total, total_squares = 0.0, 0.0
    lanes = np.empty(2 * LANES, np.float32)
    lanes[:] = shift
    shifts = load(lanes, 0)
    for start in range(first, first + size, 2 * LANES * _SUMMED):
        sum0, sum1, squares0, squares1 = zeros(), zeros(), zeros(), zeros()
        for index in range(start, min(start + 2 * LANES * _SUMMED, first + size), 2 * LANES):
            value0, value1 = load(array, index) - shifts, load(array, index + LANES) - shifts
            sum0, sum1 = sum0 + value0, sum1 + value1
            squares0, squares1 = squares0 + value0 * value0, squares1 + value1 * value1
        store(lanes, 0, sum0 + sum1)
        store(lanes, LANES, squares0 + squares1)
        for lane in range(LANES):
            total += lanes[lane]
            total_squares += lanes[LANES + lane]
    return total, total_squares


# -------------------------------------------------------------------------- kernels as machine code
# Kernels as machine code: compiled once per machine, stored there, and run by a team of threads.
# The threads take tickets, numbers from a shared counter, until the work is done. They are
# OpenMP's threads where the process has loaded its library, as torch does on Linux. Those wait for
# torch's next operation anyway, while other threads would have to be woken (20 to 100 us) and
# would compete with them for the cores.

_logger = logging.getLogger(__name__)

_MARKER_NAME = "compiled"
_REPORT_SECONDS = 30.0

SIGNATURE = types.void(types.voidptr)
"""The signature of code that a team can run: it receives the address of words."""


class Array(NamedTuple):
    """Contiguous numbers in memory, which the caller keeps alive."""

    address: int
    size: int


NOTHING = Array(0, 0)

Argument = Array | int
"""An array becomes two words, a number one."""


# ---------------------------------------------------------------------------- in compiled code


@numba.njit
def words_at(address: Any, count: int) -> Any:
    """Return the words of a call, an array of int64; the first is the team's ticket counter."""
    return numba.carray(address, count, np.int64)


@numba.njit
def array_at(words: Any, index: int, dtype: Any) -> Any:
    """Return the array whose address and size are `words[index]` and the next word."""
    return numba.carray(_pointer(words[index]), words[index + 1], dtype)


@intrinsic
def take_ticket(typing: Any, words: Any) -> Any:
    """Return 0, 1, 2, ..., each number to only one thread."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        counter = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.atomic_rmw("add", counter, ir.IntType(64)(1), "monotonic")

    return types.int64(words), generate


@intrinsic
def _pointer(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


# ---------------------------------------------------------------------------- running it


def run(code: int, arguments: Sequence[Argument], threads: int) -> None:
    """Run the same code in several threads; return when all are done.

    Args:
        code: Address of compiled code with `SIGNATURE`.
        arguments: Become its words, from the second on.
        threads: Their number, including this one; there may be fewer.
    """
    words = [0]
    for argument in arguments:
        if isinstance(argument, Array):
            words += argument
        else:
            words.append(argument)
    packed = (ctypes.c_int64 * len(words))(*words)
    parallel = _openmp() if threads > 1 else None
    if parallel is not None:
        parallel(code, ctypes.addressof(packed), threads, 0)
    else:
        _run_in_pool(_function(code), ctypes.addressof(packed), threads)


@cache
def _openmp() -> Callable[[int, int, int, int], None] | None:
    """Return GNU OpenMP's `GOMP_parallel` if its library is loaded already; never load a second."""
    if not hasattr(os, "RTLD_NOLOAD"):
        return None
    try:
        library = ctypes.CDLL("libgomp.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        function: Any = library.GOMP_parallel
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    function.restype = None
    parallel: Callable[[int, int, int, int], None] = function
    return parallel


@cache
def _function(code: int) -> Callable[[int], None]:
    """Make compiled code callable; it runs without the GIL."""
    function: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code)
    return function


def _run_in_pool(code: Callable[[int], None], words: int, threads: int) -> None:
    """Run the code here and in Python's threads."""
    futures = [_pool(os.getpid()).submit(code, words) for _ in range(threads - 1)]
    code(words)
    for future in futures:
        future.result()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of a process; a forked one inherits none."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="convolution")


# ---------------------------------------------------------------------------- compiling it


class MachineCode:
    """Functions that `run` runs, which are compiled together."""

    def __init__(
        self, what: str, modules: Sequence[ModuleType], functions: Sequence[Callable[[Any], None]]
    ) -> None:
        """Compile nothing yet.

        Args:
            what: Their name in messages.
            modules: The modules whose code they use, besides their own.
            functions: Each takes the address of words.
        """
        own = functions[0].__code__.co_filename
        sources = [own, __file__, machine_code.__file__]
        sources += [str(module.__file__) for module in modules]
        name = machine_code.fingerprint({Path(source) for source in sources})
        self.folder = machine_code.base_folder() / f"network-{name}"
        self._what = what
        self._functions = functions

    @cached_property
    def addresses(self) -> dict[Callable[[Any], None], int]:
        """The address of each function's machine code, which is loaded or compiled."""
        return {
            function: machine_code.address_of(function, SIGNATURE, self.folder)
            for function in self._functions
        }

    def is_compiled(self) -> bool:
        """Whether this machine already holds the machine code of this version."""
        return (self.folder / _MARKER_NAME).exists()

    def compile_once(self, progress: Callable[[str], None] | None = None) -> None:
        """Compile the functions unless that has been done.

        Args:
            progress: Receives a line of text before and after compiling, and while waiting for
                another process that does; by default the lines go to the log.

        Raises:
            OSError: The machine code cannot be stored.
        """
        if self.is_compiled():
            return
        tell = progress or _logger.warning

        def waiting(seconds: float) -> None:
            if seconds % _REPORT_SECONDS < machine_code.POLL_SECONDS:
                tell(f"Another process is compiling the {self._what}; waiting for it ...")

        with machine_code.only_process(self.folder, waiting):
            if not self.is_compiled():
                tell(f"Compiling the {self._what}, once for this machine (10 to 20 s) ...")
                start = time.monotonic()
                _ = self.addresses
                (self.folder / _MARKER_NAME).touch()
                tell(f"The {self._what} are compiled ({time.monotonic() - start:.0f} s).")
