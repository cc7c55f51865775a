"""Every way to an index leads to the same place, in Python and in kernels."""

import pytest

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.box_field import (
    HEIGHT,
    WINDOW,
    block_index,
    column_index,
    column_of_block,
    narrow_block_index,
    neighbour_index,
    place_in_window,
)

PLACES = [(0, 0, 0), (-1, HEIGHT - 1, WINDOW), (1000, 64, -1000), (255, 7, 256 * 99 + 1)]


@pytest.mark.parametrize("place", PLACES)
def test_an_index_leads_back_to_its_place_in_the_window(place):
    x, y, z = place
    index = block_index(x, y, z)
    assert place_in_window(index) == (x % WINDOW, y, z % WINDOW)
    assert narrow_block_index(x, y, z) == index
    assert column_of_block(index) == column_index(x, z)


@pytest.mark.parametrize("place", PLACES)
def test_a_neighbour_is_where_its_place_is(place):
    x, y, z = place
    for dx, dz in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        neighbour = neighbour_index(block_index(x, y, z), dx, 0, dz)
        assert neighbour == block_index(x + dx, y, z + dz)


@kernel()
def _index_in_a_kernel(x: int, y: int, z: int) -> int:
    return block_index(x, y, z)


def test_kernels_and_python_agree():
    assert [_index_in_a_kernel(*place) for place in PLACES] == [
        block_index(*place) for place in PLACES
    ]
