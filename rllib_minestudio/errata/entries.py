"""The list of errata, and the judgement of a run by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rllib_minestudio.errata import modes
from rllib_minestudio.errata.stage import Finding, Stage


@dataclass(frozen=True)
class Erratum:
    """One mended defect.

    Attributes:
        id: Its name in tables, docs and JSON.
        date: When it was mended, ISO 8601.
        mended_in: The first revision of the numerics without it.
        wrong: What was wrong, one sentence.
        means: What that means for an affected run.
        options: Those that decide; an algorithm that lacks one is not concerned.
        look: Says of a stage that an older revision trained whether it was in the mode concerned.
    """

    id: str
    date: str
    mended_in: int
    wrong: str
    means: str
    options: tuple[str, ...]
    look: Callable[[Stage], Finding]


ERRATA: tuple[Erratum, ...] = (
    Erratum(
        id="bootstrap-values-aged",
        date="2026-11-22",
        mended_in=1,
        wrong=(
            "Where a time limit cut an episode inside a fragment, the return was bootstrapped from "
            "the behaviour policy's value, also when the learner computed all other values anew."
        ),
        means=(
            "The values of the steps before such a cut were learned from an outdated one, in value "
            "warmup from that of the head it began with (0 with zero_init_value_head)."
        ),
        options=("vf_warmup_iterations", "replay_buffer"),
        look=modes.bootstrap_values_aged,
    ),
    Erratum(
        id="prior-memory-lost",
        date="2026-11-22",
        mended_in=1,
        wrong=(
            "Where fragments of an environment did not reach the learner in order, the prior "
            "started them with an empty memory."
        ),
        means=(
            "kl_to_prior was too high, by tenths of a nat with a prior that uses its memory, and "
            "the KL term pulled towards a prior that had forgotten."
        ),
        options=("prior", "carry_prior_state", "replay_buffer"),
        look=modes.prior_memory_lost,
    ),
    Erratum(
        id="remainder-weights",
        date="2026-11-22",
        mended_in=1,
        wrong=(
            "Where the fragments of an iteration did not divide evenly into optimizer steps and "
            "minibatches, those in the smaller remainder weighed more than the others."
        ),
        means=(
            "The last steps of an iteration followed few fragments: noisier updates, without a "
            "bias, since fragments are shuffled."
        ),
        options=("gradient_accumulation", "fragments_per_minibatch", "fragments_per_iteration"),
        look=modes.remainder_weights,
    ),
    Erratum(
        id="entropy-in-warmup",
        date="2026-11-22",
        mended_in=1,
        wrong="The entropy bonus acted on the policy during value warmup, too.",
        means="Training proper began from a policy with more entropy than the one it was given.",
        options=("entropy_coeff", "vf_warmup_iterations"),
        look=modes.entropy_in_warmup,
    ),
    Erratum(
        id="warmup-drop",
        date="2026-11-22",
        mended_in=1,
        wrong=(
            "At the end of value warmup the weights' version jumped by the warmup's length: all "
            "fragments that waited in the replay buffer counted as too stale."
        ),
        means="Those fragments were played for nothing; no number is wrong.",
        options=("vf_warmup_iterations", "replay_buffer"),
        look=modes.warmup_drop,
    ),
    Erratum(
        id="optimizer-options-kept",
        date="2026-11-22",
        mended_in=1,
        wrong=(
            "A run restored with another weight_decay, adam_eps or lr_factors went on with the "
            "values that were saved."
        ),
        means="From then on it trained with the former values, not with those of its config.",
        options=modes.OPTIMIZER_OPTIONS,
        look=modes.optimizer_options_kept,
    ),
)
"""In the order of the tables, oldest revision first."""

NUMERICS = max(erratum.mended_in for erratum in ERRATA)
"""Revision of the learner's numerics: written into every new record."""


class Verdict(NamedTuple):
    """Whether a run was affected by an erratum.

    Attributes:
        erratum: Which.
        affected: Whether it was.
        why: The options that decide it, with their values, or the revision.
        where: The first record of the part concerned; empty if it was not affected.
    """

    erratum: Erratum
    affected: bool
    why: str
    where: str = ""


def judge(stages: Sequence[Stage]) -> list[Verdict]:
    """Say of each erratum whether a run was affected.

    Args:
        stages: What the run's records tell, in the order of time; at least one.
    """
    return [_judge(erratum, stages) for erratum in ERRATA]


def _judge(erratum: Erratum, stages: Sequence[Stage]) -> Verdict:
    older = [stage for stage in stages if stage.numerics < erratum.mended_in]
    if not older:
        oldest = min(stage.numerics for stage in stages)
        return Verdict(erratum, False, f"trained by revision {oldest} of the numerics")
    findings = [_look(erratum, stage) for stage in older]
    for stage, finding in zip(older, findings, strict=True):
        if finding.affected:
            return Verdict(erratum, True, finding.why, stage.where)
    return Verdict(erratum, False, findings[0].why)


def _look(erratum: Erratum, stage: Stage) -> Finding:
    missing = [name for name in erratum.options if name not in stage.config]
    if missing:
        return Finding(False, f"the algorithm has no option {missing[0]}")
    return erratum.look(stage)
