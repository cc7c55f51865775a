"""The options of MineStudioBC."""

from __future__ import annotations

from dataclasses import dataclass

from rllib_minestudio.algorithms.options.learning_rate import LearningRate
from rllib_minestudio.algorithms.options.shared import ModelArgument, SharedOptions
from rllib_minestudio.option_fields import MANY, like, option


@dataclass(kw_only=True, eq=False, repr=False)
class CloningOptions(SharedOptions):
    """MineStudioBC's own options, and those of RLlib's for which it has a default of its own."""

    lr: LearningRate = like(SharedOptions, "lr", default=1.0e-3)
    weight_decay: float = like(SharedOptions, "weight_decay", default=0.01)

    window_length: int = option(
        128, "This many consecutive steps of an episode are imitated together.", least=1, most=MANY
    )
    burn_in: int | None = option(
        None,
        "This many frames before a window rebuild the memory; null: as many as the network "
        "remembers.",
        most=MANY,
    )
    carry_memory: bool = option(
        False,
        "Each window of a batch continues the one at its place in the batch before, with the "
        "memory that this left: the policy learns with memories as old as those it plays with. "
        "Only the episodes are shuffled, of which `windows_per_batch` are held in memory. "
        "Otherwise windows are drawn at random, each with a memory of `burn_in` frames.",
    )
    windows_per_batch: int = option(
        8, "An optimizer step averages over this many windows.", least=1, most=MANY
    )
    shuffle_among: int = option(
        64,
        "Each window is drawn from among this many decoded ones, which are held in memory.",
        most=MANY,
    )
    num_readers: int = option(
        1, "This many tasks of Ray Data decode episodes at the same time.", least=1, most=10_000
    )
    still_camera: bool = option(
        True,
        "Whether the camera's term of the loss also counts steps in which the camera does not "
        "turn. With false, as in MineStudio's auxiliary loss, the camera's head learns only where "
        "to turn, and the buttons alone say whether.",
    )
    max_null_run: int | None = option(
        None,
        "Where the demonstrator does nothing for longer than this many consecutive steps, the rest "
        "of these null actions is cut out of the episode together with its frames. null: nothing "
        "is cut out. (OpenAI's loader for VPT cuts out all null actions: 0.)",
        most=MANY,
    )
    validation_fraction: float = option(
        0.1, "This share of the episodes is held out for validation.", most=1.0
    )
    validation_interval: int = option(
        10, "The validation loss is computed every this many iterations.", least=1
    )


@dataclass(kw_only=True, eq=False, repr=False)
class CloningTraining(CloningOptions, ModelArgument):
    """What `MineStudioBCConfig.training` takes."""
