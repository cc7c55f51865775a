"""The product of matrices, as an instruction of numba's."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rllib_minestudio.models.vpt.simd import (
    FLOAT,
    FLOATS,
    LANES,
    NO_FLOATS,
    pointer_to,
    spread,
)
from rllib_minestudio.models.vpt.winograd import PANEL_VECTORS

ROWS = 8 if LANES == 16 else 4
"""Rows that `multiply` computes at a time: as many sums as fit into the registers."""

PANEL = PANEL_VECTORS * LANES
"""Columns that `multiply` computes at a time."""


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
        return pointer_to(context, builder, signature.args[which], array, first, to)

    one, lanes = depth.type(1), depth.type(LANES)
    vectors = [(lanes, depth.type(vector)) for vector in range(PANEL_VECTORS)]
    rows = [depth.type(row) for row in range(ROWS)]
    outs = [
        place(4, out, out_first, (out_row, row), vector, to=FLOATS)
        for row in rows
        for vector in vectors
    ]
    starts = _starts(builder, outs, adds)
    before, loop = builder.block, builder.append_basic_block("depth")
    after = builder.append_basic_block("summed")
    builder.branch(loop)

    builder.position_at_end(loop)
    step = builder.phi(depth.type)
    step.add_incoming(depth.type(0), before)
    sums = [builder.phi(FLOATS) for _ in outs]
    rights = [
        builder.load(place(2, right, right_first, (right_depth, step), vector, to=FLOATS), align=4)
        for vector in vectors
    ]
    fma = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(FLOATS, [FLOATS] * 3), f"llvm.fma.v{LANES}f32"
    )
    summed = []
    for number, row in enumerate(rows):
        factor = place(0, left, left_first, (left_depth, step), (left_row, row), to=FLOAT)
        factors = spread(builder, builder.load(factor, align=4))
        for vector in range(PANEL_VECTORS):
            summed.append(
                builder.call(fma, [factors, rights[vector], sums[PANEL_VECTORS * number + vector]])
            )
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
    starts = [builder.phi(FLOATS) for _ in outs]
    for start, value in zip(starts, loaded, strict=True):
        start.add_incoming(NO_FLOATS, before)
        start.add_incoming(value, loading)
    return starts
