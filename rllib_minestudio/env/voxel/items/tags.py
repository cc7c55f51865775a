"""Groups of items that recipes name together, such as "planks"."""

from __future__ import annotations

from rllib_minestudio.env.voxel.data import read_json
from rllib_minestudio.env.voxel.items.items import ITEM_ID

ITEM_TAGS: dict[str, frozenset[int]] = {
    tag: frozenset(ITEM_ID[name] for name in names.split())
    for tag, names in read_json("item_tags.json").items()
}
"""Item ids by the tag's name without namespace and #; tags within tags are resolved."""
