"""What is done to vectors here, besides `simd`: masks, choices, and orders of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rllib_minestudio.models.vpt.direct.blocks import INTS, keep
from rllib_minestudio.models.vpt.simd import (
    FLOATS,
    LANES,
    VECTOR,
    pointer_to,
    spread,
)

COLOURS = 3
"""Bytes of a pixel."""


@intrinsic
def load_colours(typing: Any, image: Any, index: Any) -> Any:
    """Returns the first, second and third bytes of `LANES` pixels as three vectors."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        image, index = arguments
        pixels = ir.VectorType(ir.IntType(8), COLOURS * LANES)
        place = pointer_to(context, builder, signature.args[0], image, index, pixels)
        loaded, vectors = builder.load(place, align=1), []
        for colour in range(COLOURS):
            lanes = ir.Constant(INTS, [COLOURS * lane + colour for lane in range(LANES)])
            picked = builder.shuffle_vector(loaded, loaded, lanes)
            vectors.append(builder.uitofp(picked, FLOATS))
        return context.make_tuple(builder, signature.return_type, vectors)

    return types.UniTuple(VECTOR, COLOURS)(image, types.intp), generate


@intrinsic
def filled(typing: Any, value: Any) -> Any:
    """Returns a vector of equal numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return spread(builder, arguments[0])

    return VECTOR(types.float32), generate


@intrinsic
def masked(typing: Any, vector: Any, mask: Any, index: Any) -> Any:
    """Returns the numbers for which ``mask[index : index + LANES]`` is -1, else (at 0) zeros."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, mask, index = arguments
        place = pointer_to(context, builder, signature.args[1], mask, index, INTS)
        return keep(builder, vector, builder.load(place, align=4))

    return VECTOR(VECTOR, mask, types.intp), generate


@intrinsic
def where_greater(typing: Any, left: Any, right: Any, yes: Any, no: Any) -> Any:
    """Returns ``yes if left > right else no`` by lane; NaN is greater than all, and less."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right, yes, no = arguments
        return builder.select(builder.fcmp_unordered(">", left, right), yes, no)

    return VECTOR(*[VECTOR] * 4), generate


@intrinsic
def where_equal(typing: Any, left: Any, right: Any, yes: Any) -> Any:
    """Returns ``yes if left == right else 0`` by lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right, yes = arguments
        is_equal = builder.fcmp_ordered("==", left, right)
        return builder.select(is_equal, yes, ir.Constant(FLOATS, [0.0] * LANES))

    return VECTOR(*[VECTOR] * 3), generate


def _order(lanes: list[int]) -> Callable[..., Any]:
    """An instruction that picks lanes of two vectors, the second's counted on."""

    @intrinsic
    def pick(typing: Any, low: Any, high: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.shuffle_vector(*arguments, ir.Constant(INTS, lanes))

        return VECTOR(VECTOR, VECTOR), generate

    return pick


even = _order([2 * lane for lane in range(LANES)])
"""Every second of two vectors' numbers, from the first."""

odd = _order([2 * lane + 1 for lane in range(LANES)])
"""Every second of two vectors' numbers, from the second."""

alternating_low = _order([lane // 2 + lane % 2 * LANES for lane in range(LANES)])
"""The first halves of two vectors, taking turns."""

alternating_high = _order([(lane + LANES) // 2 + lane % 2 * LANES for lane in range(LANES)])
"""The second halves, likewise."""


@intrinsic
def total(typing: Any, vector: Any) -> Any:
    """Returns the sum of a vector's numbers: of halves, of their halves, and so on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, width = arguments[0], LANES // 2
        while width:
            lanes = [lane % width + width if lane < width else 0 for lane in range(LANES)]
            moved = builder.shuffle_vector(vector, vector, ir.Constant(INTS, lanes))
            vector, width = builder.fadd(vector, moved), width // 2
        return builder.extract_element(vector, ir.IntType(32)(0))

    return types.float32(VECTOR), generate
