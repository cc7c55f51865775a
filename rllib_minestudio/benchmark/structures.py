"""Structures of `structure:NAME`, defined in `structures.yaml`, and the search for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCKS
from rllib_minestudio.evaluation.filters.conditions import matches
from rllib_minestudio.foundation.files import read_yaml

_FILE = Path(__file__).parent / "structures.yaml"

_NEW, _SOLID, _AIR, _ANYTHING = "#", "X", "_", "."

Cells = frozenset[tuple[int, int, int, str]]
"""x, y and z relative to the lowest corner, and the letter of the required block."""


@dataclass(frozen=True)
class Structure:
    """A structure of blocks, in all orientations.

    Attributes:
        name: As in `structure:NAME`.
        text: Its description.
        legend: Letter -> shell patterns of blocks.
        variants: The shapes, in each distinct rotation by quarter turns.
    """

    name: str
    text: str
    legend: Mapping[str, Sequence[str]]
    variants: tuple[Cells, ...]


@cache
def known_structures() -> Mapping[str, Structure]:
    """Return all structures by name."""
    return {name: _structure(name, facts) for name, facts in read_yaml(_FILE).items()}


def find_structures(
    structure: Structure, blocks: NDArray[np.uint16], before: NDArray[np.uint16]
) -> list[NDArray[np.bool_]]:
    """Find the places of a structure in a box.

    Args:
        structure: The structure.
        blocks: Present block ids of the box, [x, y, z].
        before: Block ids at the start of the episode, [x, y, z].

    Returns:
        Per variant a bool array, [x, y, z], of the places of its lowest corner; smaller than the
        box by the variant's size less one along each axis.
    """
    present = {_SOLID: blocks != AIR, _AIR: blocks == AIR}
    present[_NEW] = present[_SOLID] & (blocks != before)
    for letter, patterns in structure.legend.items():
        present[letter] = np.any([matching_blocks(pattern) for pattern in patterns], 0)[blocks]
    return [_places(variant, present) for variant in structure.variants]


def _places(cells: Cells, present: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return at which corners all cells match."""
    size = np.max([cell[:3] for cell in cells], axis=0) + 1
    room = np.maximum(np.array(present[_SOLID].shape) - size + 1, 0).tolist()
    found = np.ones(room, np.bool_)
    for x, y, z, letter in sorted(cells):
        found &= present[letter][x : x + room[0], y : y + room[1], z : z + room[2]]
    return found


def _structure(name: str, facts: Mapping[str, Any]) -> Structure:
    """Build a structure from its entry in the file."""
    variants = {turned: None for shape in facts["shapes"] for turned in _turned(_cells(shape))}
    text = " ".join(facts["text"].split())
    return Structure(name, text, facts.get("legend", {}), tuple(variants))


def _cells(shape: Sequence[str | Sequence[str]]) -> Cells:
    """Return the cells of a shape, whose rows run along x and are stacked along z."""
    layers = [[layer] if isinstance(layer, str) else layer for layer in shape]
    return frozenset(
        (x, y, z, letter)
        for y, layer in enumerate(layers)
        for z, row in enumerate(layer)
        for x, letter in enumerate(row)
        if letter != _ANYTHING
    )


def _turned(cells: Cells) -> Iterator[Cells]:
    """Yield a shape rotated about the vertical axis by 0 to 3 quarter turns."""
    for _ in range(4):
        low_x, low_z = min(cell[0] for cell in cells), min(cell[2] for cell in cells)
        cells = frozenset((x - low_x, y, z - low_z, letter) for x, y, z, letter in cells)
        yield cells
        cells = frozenset((-z, y, x, letter) for x, y, z, letter in cells)


# ---------------------------------------------------------------- blocks and items by shell pattern

__all__ = ["AIR", "BLOCK_NAMES", "matching_blocks"]

BLOCK_NAMES: tuple[str, ...] = tuple(block.name for block in BLOCKS)
"""Names of all blocks of Minecraft 1.16.5, by block id."""


@cache
def matching_blocks(pattern: str) -> NDArray[np.bool_]:
    """Return bool [blocks]: by block id, whether the name matches a shell pattern."""
    return np.array([matches(name, pattern) for name in BLOCK_NAMES])
