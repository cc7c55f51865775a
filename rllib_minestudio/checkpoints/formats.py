"""What the text files of checkpoints, and of runs, may hold.

Options of networks, environments and algorithms are bounded here as plain data, and checked by
their owners against their own declarations, as those of an experiment file are.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from rllib_minestudio.foundation.documents import (
    HUGE,
    Count,
    Document,
    Few,
    ListOf,
    MappingOf,
    Measure,
    Measured,
    MeasuredMapping,
    Name,
    Plain,
    PlainMapping,
    RelativePath,
    Seed,
    Text,
)
from rllib_minestudio.foundation.options import LONGEST_PATH, MANY, is_import_path

MOST_FILES = MANY
MOST_BYTES = 10**15


def _class_name(name: str) -> str:
    if not (name.isidentifier() or is_import_path(name)):  # also makes it safe to print
        raise ValueError("must be a name or import path")
    return name


ClassName = Annotated[str, Field(max_length=LONGEST_PATH), AfterValidator(_class_name)]


class ResultDocument(Document):
    """A result of training; the other metrics depend on the algorithm."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Measured]

    training_iteration: Count = 0


class CodeDocument(Document):
    """What `record.code_identity` returns."""

    commit: Name | None = None
    modified: bool | None = None


class LooksDocument(Document):
    """The looks of the embedded engine's frames, as `env.voxel.contract` describes them."""

    revision: Few
    pictures: Name
    resource_pack: Name | None = None


class RecordDocument(Document):
    """`record.yaml`: the fields of `CheckpointRecord`."""

    format: Few
    saved_at: Name
    result: ResultDocument
    versions: MappingOf[Text]
    code: CodeDocument
    numerics: Few
    looks: LooksDocument | None = None
    config: MeasuredMapping
    files: Annotated[
        dict[RelativePath, Annotated[int, Field(ge=0, le=MOST_BYTES)]], Field(max_length=MOST_FILES)
    ]
    digests: Annotated[
        dict[RelativePath, Annotated[str, Field(max_length=64, pattern="^[0-9a-f]{64}$")]],
        Field(max_length=MOST_FILES),
    ]


class NetworkDocument(Document):
    """`network.json` of a policy that is not VPT."""

    policy: ClassName
    options: PlainMapping


class VPTDocument(Document):
    """`network.json` of VPT: its options."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Plain]


class HuggingFaceDocument(Document):
    """MineStudio's `config.json`, to which Hugging Face adds entries of its own."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Plain]

    policy_kwargs: PlainMapping
    temperature: Annotated[float, Field(ge=0, le=HUGE)] = 1.0


class PlayingDocument(Document):
    """`playing.yaml`."""

    algorithm: ClassName
    env: Name
    env_config: MeasuredMapping
    num_envs_per_env_runner: Annotated[int, Field(ge=1, le=MANY)]
    seed: Seed | None = None
    env_pool: PlainMapping | None = None
    prior: Text | None = None
    prior_update_interval: Count = 0
    weights: Text | Annotated[list[Text], Field(min_length=2, max_length=2)] | None = None
    looks: LooksDocument | None = None


# ------------ what the files of a run's folder may hold, from which a run is resumed and summarised


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
