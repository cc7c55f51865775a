"""Filters, which label episodes one at a time.

A filter is a condition on an episode, together with the label it writes. Filters combine with `&`,
`|` and `~`, or in text form: `parse_filter("kill_entity:cow>=3 and not length<100")`.
"""

from rllib_minestudio.evaluation.filters.conditions import (
    WORLD_FACTS,
    EpisodeFilter,
    Every,
    FunctionFilter,
    Has,
    HeldItem,
    InfoBaseFilter,
    InfoValue,
    Inside,
    Measure,
    OutcomeFlag,
    Quantity,
    Statistic,
    Task,
    Threshold,
    WorldFact,
    WorldQuantity,
    WornItem,
)
from rllib_minestudio.evaluation.filters.text import parse_filter, parse_quantity

__all__ = [
    "WORLD_FACTS",
    "EpisodeFilter",
    "Every",
    "FunctionFilter",
    "Has",
    "HeldItem",
    "InfoBaseFilter",
    "InfoValue",
    "Inside",
    "Measure",
    "OutcomeFlag",
    "Quantity",
    "Statistic",
    "Task",
    "Threshold",
    "WorldFact",
    "WorldQuantity",
    "WornItem",
    "parse_filter",
    "parse_quantity",
]
