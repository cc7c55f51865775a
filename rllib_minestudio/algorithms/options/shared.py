"""The options that MineStudioPPO and MineStudioBC have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rllib_minestudio.algorithms.options.learning_rate import LearningRate, rate_problems
from rllib_minestudio.option_checks import broken_rule
from rllib_minestudio.option_fields import MANY, option


def _class_problems(name: str, value: Any) -> list[str]:
    """Judge a class or its name; whether there is such a policy is judged with the model."""
    if isinstance(value, str | type):
        return []
    return [broken_rule(name, value, "must be the name or import path of a policy's class")]


@dataclass(kw_only=True, eq=False, repr=False)
class SharedOptions:
    """Which policy is trained, and how, whatever the objective is.

    Mixed into RLlib's configs: env runners, learners and data, which a config names, are annotated
    with the options alone and read RLlib's settings from the same object.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # noqa: D105
            ...

    module_class: str = option(
        "VPT",
        "The policy is `VPT`, `ConvGRU`, or a `RecurrentRLModule` of your own, given by its import "
        "path ([policies.md](policies.md)); `model` holds its options.",
        check=_class_problems,
    )
    lr: LearningRate = option(
        2.0e-5,
        "Learning rate of AdamW: a number, or a schedule [[environment step, rate], ...].",
        check=rate_problems,
    )
    lr_factors: dict[str, float] = option(
        {},
        "Parameters whose name matches a shell pattern learn at `lr` times its factor; the first "
        "matching pattern applies. (To exclude parts from training, use the model's `freeze`.)",
    )
    weight_decay: float = option(0.04, "Weight decay of AdamW.", most=1e9)
    adam_eps: float = option(1.0e-8, "Epsilon in the denominator of AdamW.", least=1e-300, most=1e9)
    grad_clip: float | None = option(
        5.0, "Gradients are clipped to this global norm; null or 0 turns clipping off."
    )
    max_nonfinite_minibatches: int = option(
        10,
        "This many minibatches in a row with a NaN or infinite loss end the run; fewer are skipped "
        "and counted.",
        least=1,
    )
    context_length: int = option(
        64,
        "Backpropagation through time is truncated to chunks of this many steps; the memory is "
        "carried from chunk to chunk.",
        least=1,
        most=MANY,
    )
    gamma: float = option(0.99, "Rewards are discounted by this factor per step.", most=1.0)


@dataclass(kw_only=True, eq=False, repr=False)
class ModelArgument:
    """What `training` takes besides: the model's options, which become `model_config`."""

    model: dict[str, Any] = option(
        {},
        "The policy has these options: `weights` (a checkpoint: see `rllib model --help`), "
        "`freeze` (patterns on parameter names), and those of its network; VPT's are `preset` "
        "(`1x`, `2x`, `3x`, `nano`) and the fields of `VPTConfig`. Keys are added to those that "
        "were set before.",
    )
