"""Where a block and a column lie in the flat arrays of a `World`.

x and z wrap around at the borders of the window, so that every column of the world has a place in
it: bits 15 to 22 of a block's index are x, bits 7 to 14 z, bits 0 to 6 y. The layers of a column
lie side by side; a column's index has 8 bits of x above 8 of z.
"""

from __future__ import annotations

from numba import int32

from rllib_minestudio.env.voxel.kernels import kernel, shared_with_kernels

WINDOW = 256
"""Columns along each side of the window."""
HEIGHT = 128
"""Layers; blocks exist for 0 <= y < HEIGHT."""
CHUNK = 16
"""Columns along each side of a chunk."""

_LAST_COLUMN = WINDOW - 1
_LAST_LAYER = HEIGHT - 1


@shared_with_kernels
def block_index(x: int, y: int, z: int) -> int:
    """Index of block (x, y, z), whose y is within the height."""
    return ((x & _LAST_COLUMN) << 15 | (z & _LAST_COLUMN) << 7) + y


@shared_with_kernels
def column_index(x: int, z: int) -> int:
    """Index of column (x, z)."""
    return (x & _LAST_COLUMN) << 8 | z & _LAST_COLUMN


@shared_with_kernels
def place_in_window(index: int) -> tuple[int, int, int]:
    """The x, y and z that `block_index` made an index of, x and z within the window."""
    return index >> 15, index & _LAST_LAYER, index >> 7 & _LAST_COLUMN


@shared_with_kernels
def narrow_block_index(x: int, y: int, z: int) -> int:
    """As `block_index`, from int32 to int32 for loops that are to be vectorised; y wraps, too."""
    return (
        int32((x & int32(_LAST_COLUMN)) << int32(15))
        | int32((z & int32(_LAST_COLUMN)) << int32(7))
        | int32(y & int32(_LAST_LAYER))
    )


@kernel(fastmath=True)  # LLVM inlines it only into functions that are compiled alike
def neighbour_index(index: int, x: int, y: int, z: int) -> int:
    """Index, int32, of the block that is (x, y, z) steps away from another."""
    return (
        ((index + int32(x << int32(15))) & int32(_LAST_COLUMN << 15))
        | ((index + int32(z << int32(7))) & int32(_LAST_COLUMN << 7))
        | ((index + y) & int32(_LAST_LAYER))
    )


@shared_with_kernels
def column_of_block(index: int) -> int:
    """Index, int32, of the column that a block is in."""
    return index >> int32(7)
