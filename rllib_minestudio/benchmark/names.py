"""Names in conditions: a pattern that nothing of the game fits is a mistake."""

from __future__ import annotations

from collections.abc import Sequence

from rllib_minestudio.benchmark.blocks import BLOCK_NAMES
from rllib_minestudio.benchmark.structures import known_structures
from rllib_minestudio.env.voxel.data.vocabulary import NAMESPACE
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.errors import did_you_mean
from rllib_minestudio.evaluation.filters import WorldFact
from rllib_minestudio.evaluation.filters.conditions import CHEST, STRUCTURE, matches
from rllib_minestudio.option_checks import unknown_name


def name_problem(fact: WorldFact) -> str | None:
    """Say that nothing fits the pattern of a fact of the world; None if something does."""
    if fact.kind == STRUCTURE:
        known = known_structures()
        return None if fact.pattern in known else unknown_name("structure", fact.pattern, known)
    if fact.kind == CHEST:
        return _unfit("item", fact.pattern, list(ITEM_ID))
    return _unfit("block", fact.pattern, BLOCK_NAMES)


def _unfit(kind: str, pattern: str, names: Sequence[str]) -> str | None:
    """Say that no name fits a shell pattern; None if one does."""
    if any(matches(name, pattern) for name in names):
        return None
    hint = did_you_mean(pattern.removeprefix(NAMESPACE), names)
    return f"no {kind} fits {pattern!r}.{hint}"
