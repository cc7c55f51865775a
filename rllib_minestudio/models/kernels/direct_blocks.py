"""Instructions of `direct` as numba intrinsics: sums of products, masks, shuffles of lanes.

Nearly all of the time goes into two sums of products, which keep a block of sums in registers. An
index into padded planes (see `direct_layers`) is that of a pixel in the first plane.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rllib_minestudio.models.kernels.compilation import (
    FLOAT,
    FLOATS,
    LANES,
    NO_FLOATS,
    VECTOR,
    pointer_to,
    spread,
)

# ---------------------------------------------------------------------------- sums of products

CHANNELS = 8 if LANES == 16 else 4
"""Output channels that are computed at a time; with `VECTORS`, they fill the registers."""

VECTORS = 3
"""Vectors of pixels that `convolve_block` computes at a time."""

BLOCK = VECTORS * LANES
"""Pixels that `convolve_block` computes at a time."""

TAPS = 9
"""Elements of a 3x3 filter, row by row."""

INTS = ir.VectorType(ir.IntType(32), LANES)


@intrinsic
def convolve_block(
    typing: Any,
    image: Any,
    image_at: Any,
    image_strides: Any,
    filters: Any,
    filters_at: Any,
    bias: Any,
    bias_at: Any,
    mask: Any,
    mask_at: Any,
    out: Any,
    out_at: Any,
    out_stride: Any,
    channels_in: Any,
    relu: Any,
) -> Any:
    """Convolve `BLOCK` pixels of `CHANNELS` output channels.

    Args:
        typing: Passed by numba, not by callers.
        image: float32, holds padded planes.
        image_at: Index of the first pixel.
        image_strides: Strides of planes and of rows.
        filters: float32, holds [channels_in, 3, CHANNELS, 3]: filters' rows by output channel.
        filters_at: Index of its first element.
        bias: float32, holds the sums' initial values.
        bias_at: Index of the first output channel's.
        mask: int32, -1 for pixels and 0 between rows, where results are replaced by 0.
        mask_at: Index of the first pixel.
        out: float32, receives the sums.
        out_at: Index of the first pixel.
        out_stride: Stride of planes.
        channels_in: At least 1.
        relu: Whether negative results are replaced by 0.
    """
    index = types.intp
    signature = types.void(
        *(image, index, types.UniTuple(index, 2), filters, index, bias, index, mask, index),
        *(out, index, index, index, types.boolean),
    )
    return signature, _generate_convolve_block


def _generate_convolve_block(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    (image, image_at, image_strides, filters, filters_at, bias, bias_at, mask, mask_at) = arguments[
        :9
    ]
    out, out_at, out_stride, channels_in, relu = arguments[9:]
    plane, row = cgutils.unpack_tuple(builder, image_strides)
    number = channels_in.type

    def load(which: int, array: Any, at: Any, to: Any) -> Any:
        place = pointer_to(context, builder, signature.args[which], array, at, to)
        return builder.load(place, align=4)

    starts = []
    for channel in range(CHANNELS):
        value = load(5, bias, builder.add(bias_at, number(channel)), FLOAT)
        starts += [spread(builder, value)] * VECTORS

    def add_channel(channel: Any, sums: list[Any]) -> list[Any]:
        first = builder.add(image_at, builder.mul(channel, plane))
        taps = builder.add(filters_at, builder.mul(channel, number(TAPS * CHANNELS)))
        for tap in range(TAPS):
            y, x = tap // 3 - 1, tap % 3 - 1
            at = builder.add(first, builder.add(builder.mul(row, number(y)), number(x)))
            pixels = [
                load(0, image, builder.add(at, number(LANES * vector)), FLOATS)
                for vector in range(VECTORS)
            ]
            factors = []
            for c in range(CHANNELS):
                place = builder.add(taps, number((tap // 3 * CHANNELS + c) * 3 + tap % 3))
                factors.append(spread(builder, load(3, filters, place, FLOAT)))
            terms = [(pixel, factor) for factor in factors for pixel in pixels]
            sums = [_fma(builder, *term, total) for term, total in zip(terms, sums, strict=True)]
        return sums

    sums = _repeat(builder, channels_in, starts, add_channel)
    masks = [
        load(7, mask, builder.add(mask_at, number(LANES * vector)), INTS)
        for vector in range(VECTORS)
    ]
    for count, total in enumerate(sums):
        channel, vector = divmod(count, VECTORS)
        is_negative = builder.fcmp_ordered("<", total, NO_FLOATS)  # false for NaN, which stays
        positive = builder.select(is_negative, NO_FLOATS, total)
        value = keep(builder, builder.select(relu, positive, total), masks[vector])
        at = builder.add(out_at, builder.mul(out_stride, number(channel)))
        at = builder.add(at, number(LANES * vector))
        place = pointer_to(context, builder, signature.args[9], out, at, FLOATS)
        builder.store(value, place, align=4)
    return context.get_dummy_value()


@intrinsic
def correlate_block(
    typing: Any,
    image: Any,
    image_at: Any,
    gradient: Any,
    gradient_at: Any,
    gradient_stride: Any,
    sums: Any,
    sums_at: Any,
    vectors: Any,
) -> Any:
    """Add to the gradients of one row of filter taps, lane by lane.

    Args:
        typing: Passed by numba, not by callers.
        image: float32, holds padded planes.
        image_at: Index of the first tap's first pixel.
        gradient: float32, holds the planes of the gradient of the output.
        gradient_at: Index of the first pixel.
        gradient_stride: Stride of planes.
        sums: float32, holds [CHANNELS, 3 taps, LANES].
        sums_at: Index of its first element.
        vectors: Number of vectors of pixels, at least 1.
    """
    index = types.intp
    signature = types.void(image, index, gradient, index, index, sums, index, index)
    return signature, _generate_correlate_block


def _generate_correlate_block(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    image, image_at, gradient, gradient_at, gradient_stride, sums, sums_at, vectors = arguments
    number = vectors.type

    def place(which: int, array: Any, at: Any) -> Any:
        return pointer_to(context, builder, signature.args[which], array, at, FLOATS)

    places = [
        place(5, sums, builder.add(sums_at, number(LANES * count))) for count in range(3 * CHANNELS)
    ]
    planes = [
        builder.add(gradient_at, builder.mul(gradient_stride, number(channel)))
        for channel in range(CHANNELS)
    ]

    def add_vector(vector: Any, totals: list[Any]) -> list[Any]:
        pixel = builder.mul(vector, number(LANES))
        first = builder.add(image_at, pixel)
        taps = [
            builder.load(place(0, image, builder.add(first, number(tap))), align=4)
            for tap in range(3)
        ]
        slopes = [
            builder.load(place(2, gradient, builder.add(plane, pixel)), align=4) for plane in planes
        ]
        terms = [(tap, slope) for slope in slopes for tap in taps]
        return [_fma(builder, *term, total) for term, total in zip(terms, totals, strict=True)]

    starts = [builder.load(each, align=4) for each in places]
    totals = _repeat(builder, vectors, starts, add_vector)
    for total, each in zip(totals, places, strict=True):
        builder.store(total, each, align=4)
    return context.get_dummy_value()


def _repeat(
    builder: Any, count: Any, starts: list[Any], step: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """Generate `for i in range(count): values = step(i, values)`; `count` is at least 1."""
    before, loop = builder.block, builder.append_basic_block("loop")
    after = builder.append_basic_block("after")
    builder.branch(loop)
    builder.position_at_end(loop)
    index = builder.phi(count.type)
    index.add_incoming(count.type(0), before)
    values = [builder.phi(start.type) for start in starts]
    following = builder.add(index, count.type(1))
    results = step(index, values)
    index.add_incoming(following, builder.block)
    for value, start, result in zip(values, starts, results, strict=True):
        value.add_incoming(start, before)
        value.add_incoming(result, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
    builder.position_at_end(after)
    return results


def _fma(builder: Any, left: Any, right: Any, total: Any) -> Any:
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(FLOATS, [FLOATS] * 3), f"llvm.fma.v{LANES}f32"
    )
    return builder.call(function, [left, right, total])


def keep(builder: Any, value: Any, mask: Any) -> Any:
    """Generate the numbers where the mask is -1, and 0 where it is 0."""
    return builder.bitcast(builder.and_(builder.bitcast(value, INTS), mask), FLOATS)


# ---------------------------------------------------------------------------- lanes
# Masks, choices and shuffles, in addition to the operations in `vectors`.

COLOURS = 3
"""Bytes of a pixel."""


@intrinsic
def load_colours(typing: Any, image: Any, index: Any) -> Any:
    """Return the first, second and third bytes of `LANES` pixels as three vectors."""

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
    """Return a vector of equal numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return spread(builder, arguments[0])

    return VECTOR(types.float32), generate


@intrinsic
def masked(typing: Any, vector: Any, mask: Any, index: Any) -> Any:
    """Return the numbers where `mask[index : index + LANES]` is -1, and 0 where it is 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, mask, index = arguments
        place = pointer_to(context, builder, signature.args[1], mask, index, INTS)
        return keep(builder, vector, builder.load(place, align=4))

    return VECTOR(VECTOR, mask, types.intp), generate


@intrinsic
def where_greater(typing: Any, left: Any, right: Any, yes: Any, no: Any) -> Any:
    """Return `yes if left > right else no` by lane; a comparison with NaN is true."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right, yes, no = arguments
        return builder.select(builder.fcmp_unordered(">", left, right), yes, no)

    return VECTOR(*[VECTOR] * 4), generate


@intrinsic
def where_equal(typing: Any, left: Any, right: Any, yes: Any) -> Any:
    """Return `yes if left == right else 0` by lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right, yes = arguments
        is_equal = builder.fcmp_ordered("==", left, right)
        return builder.select(is_equal, yes, ir.Constant(FLOATS, [0.0] * LANES))

    return VECTOR(*[VECTOR] * 3), generate


def _order(lanes: list[int]) -> Callable[..., Any]:
    """An instruction that picks lanes of two vectors, the second's numbered on from the first's."""

    @intrinsic
    def pick(typing: Any, low: Any, high: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.shuffle_vector(*arguments, ir.Constant(INTS, lanes))

        return VECTOR(VECTOR, VECTOR), generate

    return pick


even = _order([2 * lane for lane in range(LANES)])
"""The even lanes of two vectors."""

odd = _order([2 * lane + 1 for lane in range(LANES)])
"""The odd lanes of two vectors."""

alternating_low = _order([lane // 2 + lane % 2 * LANES for lane in range(LANES)])
"""The first halves of two vectors, interleaved."""

alternating_high = _order([(lane + LANES) // 2 + lane % 2 * LANES for lane in range(LANES)])
"""The second halves of two vectors, interleaved."""


@intrinsic
def total(typing: Any, vector: Any) -> Any:
    """Return the sum of a vector's numbers, adding halves, then their halves, and so on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, width = arguments[0], LANES // 2
        while width:
            lanes = [lane % width + width if lane < width else 0 for lane in range(LANES)]
            moved = builder.shuffle_vector(vector, vector, ir.Constant(INTS, lanes))
            vector, width = builder.fadd(vector, moved), width // 2
        return builder.extract_element(vector, ir.IntType(32)(0))

    return types.float32(VECTOR), generate
