"""Vectors of floats as a type of numba's, and the product of matrices that is made of them.

LLVM vectorises plain loops over arrays only where it can prove that they do not overlap, and never
keeps a block of sums in registers; written in vectors, kernels come within a few percent of what
a core can do. Rounding is fixed too: nothing is contracted or reordered, so that every compilation
of a kernel gives the same bits.

Arrays are one-dimensional and contiguous: float32, or int16 holding the bits of bfloat16.
"""

from __future__ import annotations

import operator
import platform
from collections.abc import Callable
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

_FEATURES = llvmlite.binding.get_host_cpu_features()
_WIDE = bool(_FEATURES.get("avx512f"))

IS_FAST = bool(_FEATURES.get("fma")) or platform.machine() in ("aarch64", "arm64")
"""Whether the processor multiplies and adds in one instruction, as `multiply` does."""

LANES = 16 if _WIDE else 8
"""Floats in a vector; where registers hold fewer, LLVM takes several for one."""

ROWS = 8 if _WIDE else 4
"""Rows that `multiply` computes at a time: as many sums as fit into the registers."""

PANEL = 2 * LANES
"""Columns that `multiply` computes at a time."""

_FLOAT = ir.FloatType()
_FLOATS = ir.VectorType(_FLOAT, LANES)
_INTS = ir.VectorType(ir.IntType(32), LANES)
_SHORTS = ir.VectorType(ir.IntType(16), LANES)
_ZEROS = ir.Constant(_FLOATS, [0.0] * LANES)


class Vector(types.Type):
    """The type of `LANES` float32 numbers in a register."""

    def __init__(self) -> None:
        """Names the type; there is one."""
        super().__init__(name=f"float32x{LANES}")


_vector = Vector()


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Vector) -> None:
        super().__init__(manager, type_, _FLOATS)


# ---------------------------------------------------------------------------- memory


@intrinsic
def load(typing: Any, array: Any, index: Any) -> Any:
    """Returns the vector ``array[index : index + LANES]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        array, index = arguments
        if array_type.dtype == types.float32:
            place = _pointer(context, builder, array_type, array, index, _FLOATS)
            return builder.load(place, align=4)
        place = _pointer(context, builder, array_type, array, index, _SHORTS)
        bits = builder.load(place, align=2)
        return builder.bitcast(builder.shl(builder.zext(bits, _INTS), _ints(16)), _FLOATS)

    return _vector(array, types.intp), generate


@intrinsic
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Does ``array[index : index + LANES] = value``, rounded to the nearest bfloat16 or even."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        array, index, value = arguments
        if array_type.dtype == types.float32:
            place = _pointer(context, builder, array_type, array, index, _FLOATS)
            builder.store(value, place, align=4)
        else:
            place = _pointer(context, builder, array_type, array, index, _SHORTS)
            builder.store(_to_bfloat16(builder, value), place, align=2)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


def _to_bfloat16(builder: Any, value: Any) -> Any:
    """The upper halves of the numbers; a NaN as the processor makes it stays one."""
    bits = builder.bitcast(value, _INTS)
    is_odd = builder.and_(builder.lshr(bits, _ints(16)), _ints(1))
    rounded = builder.add(bits, builder.add(is_odd, _ints(0x7FFF)))
    return builder.trunc(builder.lshr(rounded, _ints(16)), _SHORTS)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any, to: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), to.as_pointer())


def _ints(value: int) -> Any:
    return ir.Constant(_INTS, [value] * LANES)


def _spread(builder: Any, scalar: Any) -> Any:
    """A vector of equal numbers."""
    undefined = ir.Constant(_FLOATS, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
    return builder.shuffle_vector(first, undefined, _ints(0))


# ---------------------------------------------------------------------------- arithmetic


def _elementwise(instruction: str) -> Callable[..., Any]:
    @intrinsic
    def operation(typing: Any, left: Any, right: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, instruction)(*arguments)

        return _vector(_vector, _vector), generate

    return operation


@intrinsic
def _scale(typing: Any, factor: Any, vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fmul(_spread(builder, arguments[0]), arguments[1])

    return _vector(types.float32, _vector), generate


def _overload(symbol: Callable[..., Any], left_type: types.Type, operation: Any) -> None:
    """Makes ``operation`` what a symbol does with something on the left and a vector."""
    # Numba compares names and annotations of the two functions; lambdas have none of the latter.
    overload(symbol)(
        lambda left, right: (
            (lambda left, right: operation(left, right))
            if left == left_type and right == _vector
            else None
        )
    )


_overload(operator.add, _vector, _elementwise("fadd"))
_overload(operator.sub, _vector, _elementwise("fsub"))
_overload(operator.mul, types.float32, _scale)


@intrinsic
def positive_part(typing: Any, vector: Any) -> Any:
    """Returns max(vector, 0); NaN stays NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        is_negative = builder.fcmp_ordered("<", arguments[0], _ZEROS)
        return builder.select(is_negative, _ZEROS, arguments[0])

    return _vector(_vector), generate


# ---------------------------------------------------------------------------- matrices


@intrinsic
def multiply(
    typing: Any,
    left: Any,
    left_at: Any,
    right: Any,
    right_at: Any,
    out: Any,
    out_at: Any,
    depth: Any,
    adds: Any,
) -> Any:
    """Does out = left @ right, or out += left @ right, for one block that fits into registers.

    Args:
        typing: Numba's, not passed by callers.
        left: float32, holds a matrix [ROWS, depth].
        left_at: Index of its first element, and its strides along rows and along depth.
        right: float32, holds a matrix [depth, PANEL] whose rows are contiguous.
        right_at: Index of its first element, and its stride along depth.
        out: float32, holds a matrix [ROWS, PANEL] whose rows are contiguous.
        out_at: Index of its first element, and its stride along rows.
        depth: Length of the sums, at least 1; they run from the first to the last.
        adds: Whether to begin with what is in ``out``, else with 0.
    """
    index = types.intp
    pair, triple = types.UniTuple(index, 2), types.UniTuple(index, 3)
    signature = types.void(left, triple, right, pair, out, pair, index, types.boolean)
    return signature, _generate_multiply


def _generate_multiply(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    left, left_at, right, right_at, out, out_at, depth, adds = arguments
    left_first, left_row, left_depth = cgutils.unpack_tuple(builder, left_at)
    right_first, right_depth = cgutils.unpack_tuple(builder, right_at)
    out_first, out_row = cgutils.unpack_tuple(builder, out_at)

    def place(which: int, array: Any, first: Any, *steps: tuple[Any, Any], to: Any) -> Any:
        for stride, count in steps:
            first = builder.add(first, builder.mul(stride, count))
        return _pointer(context, builder, signature.args[which], array, first, to)

    one, lanes = depth.type(1), depth.type(LANES)
    halves = [(lanes, depth.type(half)) for half in range(2)]
    rows = [depth.type(row) for row in range(ROWS)]
    outs = [
        place(4, out, out_first, (out_row, row), half, to=_FLOATS)
        for row in rows
        for half in halves
    ]
    starts = _starts(builder, outs, adds)
    before, loop = builder.block, builder.append_basic_block("depth")
    after = builder.append_basic_block("summed")
    builder.branch(loop)

    builder.position_at_end(loop)
    step = builder.phi(depth.type)
    step.add_incoming(depth.type(0), before)
    sums = [builder.phi(_FLOATS) for _ in outs]
    rights = [
        builder.load(place(2, right, right_first, (right_depth, step), half, to=_FLOATS), align=4)
        for half in halves
    ]
    fma = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_FLOATS, [_FLOATS] * 3), f"llvm.fma.v{LANES}f32"
    )
    summed = []
    for number, row in enumerate(rows):
        factor = place(0, left, left_first, (left_depth, step), (left_row, row), to=_FLOAT)
        factors = _spread(builder, builder.load(factor, align=4))
        for half in range(2):
            summed.append(builder.call(fma, [factors, rights[half], sums[2 * number + half]]))
    for total, start, value in zip(sums, starts, summed, strict=True):
        total.add_incoming(start, before)
        total.add_incoming(value, loop)
    following = builder.add(step, one)
    step.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, depth), loop, after)

    builder.position_at_end(after)
    for value, out_place in zip(summed, outs, strict=True):
        builder.store(value, out_place, align=4)
    return context.get_dummy_value()


def _starts(builder: Any, outs: list[Any], adds: Any) -> list[Any]:
    """What the sums begin with."""
    before = builder.block
    with builder.if_then(adds):
        loaded = [builder.load(place, align=4) for place in outs]
        loading = builder.block
    starts = [builder.phi(_FLOATS) for _ in outs]
    for start, value in zip(starts, loaded, strict=True):
        start.add_incoming(_ZEROS, before)
        start.add_incoming(value, loading)
    return starts
