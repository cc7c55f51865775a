"""What a stack has besides its item: wear, enchantments, potions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_minestudio.env.voxel.items.items import (
    ENCHANTMENTS,
    ITEM_ID,
    ITEMS,
    LARGEST_DATA,
    POTION_ITEMS,
    POTIONS,
    enchanted,
    enchantments_of,
    level_of,
    possible_enchantments,
    potion_data,
    potion_of,
    wear_of,
    with_wear,
)
from rllib_minestudio.env.voxel.player.player import EFFECTS

TOOLS = [item for item in ITEMS if possible_enchantments(item)]


@st.composite
def stacks(draw):
    """An item, its wear and levels of some of its enchantments."""
    item = draw(st.sampled_from(TOOLS))
    some = draw(st.lists(st.sampled_from(possible_enchantments(item)), unique=True))
    levels = {name: draw(st.integers(1, ENCHANTMENTS[name].levels)) for name in some}
    return item, draw(st.integers(0, max(ITEMS[item].durability - 1, 0))), levels


@given(stacks())
def test_all_of_it_comes_back(stack):
    item, wear, levels = stack
    data = enchanted(item, wear, levels)
    assert wear_of(data) == wear and enchantments_of(item, data) == levels
    assert 0 <= data <= LARGEST_DATA < 2**63
    worn = with_wear(data, 5)
    assert wear_of(worn) == 5 and enchantments_of(item, worn) == levels
    for name in ENCHANTMENTS:
        assert level_of(item, data, name) == levels.get(name, 0)


@pytest.mark.parametrize("kind", POTIONS)
def test_so_do_potions(kind):
    data = potion_data(kind)
    assert potion_of(data) == kind and wear_of(data) == 0 and data <= LARGEST_DATA
    for item in POTION_ITEMS:
        assert not enchantments_of(item, data) and level_of(item, data, "sharpness") == 0
    assert all(effect.name in EFFECTS for effect in POTIONS[kind])


@pytest.mark.parametrize(
    ("item", "can", "cannot"),
    [
        ("diamond_sword", {"sharpness", "looting", "unbreaking", "mending"}, {"efficiency"}),
        ("iron_axe", {"sharpness", "efficiency", "silk_touch"}, {"looting", "knockback"}),
        ("diamond_shovel", {"efficiency", "fortune", "silk_touch"}, {"sharpness"}),
        ("golden_boots", {"protection", "feather_falling", "soul_speed"}, {"respiration"}),
        ("leather_helmet", {"respiration", "aqua_affinity"}, {"depth_strider"}),
        ("bow", {"power", "infinity", "unbreaking"}, {"piercing"}),
        ("carved_pumpkin", {"binding_curse"}, {"unbreaking"}),
        ("stone", set(), set(ENCHANTMENTS)),
    ],
)
def test_what_an_item_can_have_is_minecrafts(item, can, cannot):
    possible = set(possible_enchantments(ITEM_ID[item]))
    assert can <= possible and not cannot & possible
