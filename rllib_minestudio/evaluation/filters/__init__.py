"""Filters: episodes in, labelled episodes out, one at a time.

A filter is a condition on an episode with a label. They combine with `&`, `|` and `~`, or in
text: `parse_filter("kill_entity:cow>=3 and not length<100")`.
"""

from rllib_minestudio.evaluation.filters.base import EpisodeFilter, Every
from rllib_minestudio.evaluation.filters.conditions import (
    Flag,
    FunctionFilter,
    HeldItem,
    InfoValue,
    Measure,
    Statistic,
    Task,
)
from rllib_minestudio.evaluation.filters.info_base_filter import InfoBaseFilter
from rllib_minestudio.evaluation.filters.text import parse_filter

__all__ = [
    "EpisodeFilter",
    "Every",
    "Flag",
    "FunctionFilter",
    "HeldItem",
    "InfoBaseFilter",
    "InfoValue",
    "Measure",
    "Statistic",
    "Task",
    "parse_filter",
]
