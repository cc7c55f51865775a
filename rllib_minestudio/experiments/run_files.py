"""What the files of a run's folder may hold, from which a run is resumed and summarised."""

from __future__ import annotations

from rllib_minestudio.checkpoints.formats import CodeDocument, ResultDocument
from rllib_minestudio.foundation.documents import (
    Count,
    Document,
    Few,
    ListOf,
    MappingOf,
    Measure,
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


class LineDocument(ResultDocument):
    """A line of Tune's `result.json`."""

    training_iteration: Count
