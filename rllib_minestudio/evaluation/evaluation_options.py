"""The options of an evaluation, shared by the command line, YAML and Python.

Some imports are deferred to keep `rllib evaluate --help`, which lists these options, fast.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.episode import LARGEST_SEED, LONGEST_EPISODE, OUTCOMES
from rllib_minestudio.foundation.options import (
    MANY,
    Flag,
    Problems,
    broken_rule,
    option,
    option_problems,
)

if TYPE_CHECKING:
    from rllib_minestudio.evaluation.filters import EpisodeFilter
    from rllib_minestudio.evaluation.request import PlaySettings

SUMMARY_FILE, PAGE_FILE = "summary.json", "summary.html"
"""Files that an evaluation writes to its folder."""
ONLY = ("all", *OUTCOMES)
PRIOR = "prior"
"""Value of `kl_to` for the prior of the training."""

_BEST = re.compile(r"best_([1-9]\d*)")


def _only_problems(name: str, value: Any) -> list[str]:
    if isinstance(value, str) and (value in ONLY or _BEST.fullmatch(value)):
        return []
    return [broken_rule(name, value, f"must be {', '.join(ONLY)} or best_K, such as best_3")]


def _prior_problems(name: str, value: Any) -> list[str]:
    if isinstance(value, str) and value:
        return []
    return [broken_rule(name, value, f"must be {PRIOR!r}, or a path to weights")]


@dataclass(frozen=True)
class EvaluationOptions:
    """What to evaluate, and how."""

    episodes: int = option(20, "How many episodes are played, each to its end.", least=1, most=MANY)
    seed: int = option(
        0,
        "What their worlds and the policy's random numbers derive from.",
        least=0,
        most=LARGEST_SEED,
    )
    filter: str | None = option(
        None,
        "When an episode counts as a success, as a text such as `kill_entity:cow>=3`; without it, "
        "when the task itself says so.",
        wording="text such as kill_entity:cow>=3",
    )
    deterministic: bool = option(
        False,
        "Take the most probable actions instead of sampling, which VPT is not trained for.",
    )
    max_steps: int = option(
        LONGEST_EPISODE,
        "Steps after which an episode is truncated if its task has not ended it before; 12,000 are "
        "ten minutes of game time.",
        least=1,
        most=10**9,
    )
    max_attempts: int = option(
        3,
        "How often an episode is begun before the environment's failure is final.",
        least=1,
        most=1000,
    )
    record: Mapping[str, Any] | None = option(
        None,
        "Options of the recorder, its `folder` among them; None records nothing.",
        wording="a mapping of the recorder's options",
    )
    only: str = option(
        "all",
        "Which recordings are kept: `all`, `success`, `failure`, or `best_K`, the K with the "
        "highest returns.",
        Flag("WHICH"),
        check=_only_problems,
    )
    kl_to: str | None = option(
        None,
        "The frozen policy to which recordings show the divergence, step by step: `prior`, the one "
        "of the training, or a path to weights of the same size.",
        Flag("WEIGHTS"),
        check=_prior_problems,
    )

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> EvaluationOptions:
        """Check a user's options.

        Raises:
            InvalidOptionsError: An option is wrong; lists all problems.
        """
        problems = Problems("evaluation")
        names = [option.name for option in fields(cls)]
        checked = cls(**problems.known("option", options, names))
        problems.messages += option_problems(cls, vars(checked), "evaluation: ")
        _check_together(problems, checked)
        problems.raise_if_any()
        return checked

    @property
    def condition(self) -> EpisodeFilter | None:
        """The parsed filter; None if the task itself decides what a success is."""
        from rllib_minestudio.evaluation.filters import parse_filter

        return None if self.filter is None else parse_filter(self.filter)

    @property
    def best(self) -> int | None:
        """K of `best_K`; None if recordings are not chosen by return."""
        match = _BEST.fullmatch(self.only)
        return int(match[1]) if match else None

    def settings(self, policy: Mapping[str, Any] | None = None) -> PlaySettings:
        """Return the settings for the env runners; `policy` is stored in recordings."""
        from rllib_minestudio.evaluation.request import PlaySettings

        return PlaySettings(
            seed=self.seed,
            deterministic=self.deterministic,
            max_attempts=self.max_attempts,
            max_steps=self.max_steps,
            recorder=self.record,
            policy=policy,
        )


def _check_together(problems: Problems, options: EvaluationOptions) -> None:
    """Add the problems of the filter, of the recorder's options, and of options in combination."""
    from rllib_minestudio.env.recorder import RecorderOptions

    if options.kl_to is not None and options.record is None:
        problems.add("kl_to", options.kl_to, "needs `record`: only recordings show it")
    if isinstance(options.filter, str):
        _include(problems, lambda: _parse_without_judge(str(options.filter)))
    if isinstance(options.record, Mapping):
        _include(problems, lambda: RecorderOptions.from_mapping(options.record or {}))


def _parse_without_judge(text: str) -> None:
    """Parse a filter, refusing those that need facts of the world, which infos do not contain.

    Raises:
        InvalidOptionsError: It is not a filter, or needs facts of the world.
    """
    from rllib_minestudio.evaluation.filters import parse_filter

    if facts := sorted(fact.key for fact in parse_filter(text).needed_facts()):
        raise InvalidOptionsError(
            f"filter: {facts[0]!r} is a fact of the world, which only the judge of a benchmark's "
            "task asks the game for: write a task with this condition, see docs/benchmark.md."
        )


def _include(problems: Problems, check: Any) -> None:
    try:
        check()
    except InvalidOptionsError as error:
        problems.include(error)
