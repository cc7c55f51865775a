"""What the files of a run's folder may hold, from which a run is resumed and summarised."""

from __future__ import annotations

from pydantic import ConfigDict

from rllib_minestudio.checkpoints.formats import CodeDocument
from rllib_minestudio.foundation.documents import (
    Count,
    Document,
    Few,
    ListOf,
    MappingOf,
    Measure,
    Measured,
    MeasuredMapping,
    Text,
)


class RunDocument(Document):
    """`experiment.yaml`: the fields of `RunRecord`."""

    file: MeasuredMapping
    experiment: MeasuredMapping
    versions: MappingOf[Text]
    code: MappingOf[CodeDocument]
    numerics: Few


class ReturnsDocument(Document):
    """`random_policy.json`, whose list is the field."""

    returns: ListOf[Measure]


class ResultDocument(Document):
    """A line of Tune's `result.json`; the other metrics depend on the algorithm."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Measured]

    training_iteration: Count
