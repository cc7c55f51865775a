"""The options of an evaluation: the same on the command line, in YAML and in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rllib_minestudio.env.recorder_options import RecorderOptions
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.filters import EpisodeFilter, parse_filter
from rllib_minestudio.evaluation.request import PlaySettings
from rllib_minestudio.option_checks import Problems, is_integer

ONLY = ("all", "success", "failure")
PRIOR = "prior"
"""Value of `kl_to`: the frozen policy that ours was held to in training."""

_RANGES = {
    "episodes": (1, 1_000_000),
    "seed": (0, 2**31 - 1),
    "max_attempts": (1, 1000),
    "max_steps": (1, 10**9),
}
"""Option -> least and greatest; `max_steps` may be null."""

_BEST = re.compile(r"best_([1-9]\d*)")


@dataclass(frozen=True)
class EvaluationOptions:
    """What is evaluated, and how.

    Attributes:
        episodes: How many episodes; each is played to its end.
        seed: What their worlds and the policy's random numbers derive from.
        filter: When an episode counts as a success, as a text such as `kill_entity:cow>=3`; None
            asks the task itself.
        deterministic: Take the most probable actions instead of sampling.
        max_steps: Steps after which an episode is truncated; None leaves that to the task.
        max_attempts: How often an episode is begun before the environment's failure is final.
        record: Options of the recorder, its `folder` among them; None records nothing.
        only: Which recordings are kept: `all`, `success`, `failure`, or `best_K`, the K with the
            highest returns.
        kl_to: The frozen policy to which recordings show the divergence, step by step: `prior`, the
            one of the training, or a path to weights of the same size; None leaves it out.
    """

    episodes: int = 20
    seed: int = 0
    filter: str | None = None
    deterministic: bool = False
    max_steps: int | None = None
    max_attempts: int = 3
    record: Mapping[str, Any] | None = None
    only: str = "all"
    kl_to: str | None = None

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> EvaluationOptions:
        """Check options as they come from a user.

        Raises:
            InvalidOptionsError: If anything is wrong; lists all problems.
        """
        problems = Problems("evaluation")
        names = [option.name for option in fields(cls)]
        checked = cls(**problems.known("option", options, names))
        _check(problems, checked)
        problems.raise_if_any()
        return checked

    @property
    def condition(self) -> EpisodeFilter | None:
        """The filter; None asks the task."""
        return None if self.filter is None else parse_filter(self.filter)

    @property
    def best(self) -> int | None:
        """K of `best_K`; None if recordings are not chosen by return."""
        match = _BEST.fullmatch(self.only)
        return int(match[1]) if match else None

    def settings(self, policy: Mapping[str, Any] | None = None) -> PlaySettings:
        """Return what the env runners need to know; `policy` goes into recordings."""
        return PlaySettings(
            seed=self.seed,
            deterministic=self.deterministic,
            max_attempts=self.max_attempts,
            max_steps=self.max_steps,
            recorder=self.record,
            policy=policy,
        )


def _check(problems: Problems, options: EvaluationOptions) -> None:
    """Note every problem."""
    for name, (least, most) in _RANGES.items():
        value = getattr(options, name)
        if value is None and name == "max_steps":
            continue
        if not is_integer(value) or value < least:
            problems.add(name, value, f"must be an integer of at least {least}")
        elif value > most:
            problems.add(name, value, f"must be an integer of at most {most}")
    if not isinstance(options.deterministic, bool):
        problems.add("deterministic", options.deterministic, "must be true or false")
    if not isinstance(options.only, str) or not (
        options.only in ONLY or _BEST.fullmatch(options.only)
    ):
        problems.add("only", options.only, f"must be {', '.join(ONLY)} or best_K, such as best_3")
    if options.kl_to is not None and not (isinstance(options.kl_to, str) and options.kl_to):
        problems.add("kl_to", options.kl_to, f"must be {PRIOR!r}, or a path to weights")
    elif options.kl_to is not None and options.record is None:
        problems.add("kl_to", options.kl_to, "needs `record`: recordings are what shows it")
    if options.filter is not None and not isinstance(options.filter, str):
        problems.add("filter", options.filter, "must be text such as kill_entity:cow>=3")
    elif options.filter is not None:
        _include(problems, lambda: _parse_without_judge(str(options.filter)))
    if options.record is not None:
        if isinstance(options.record, Mapping):
            _include(problems, lambda: RecorderOptions.from_mapping(options.record or {}))
        else:
            problems.add("record", options.record, "must be a mapping of the recorder's options")


def _parse_without_judge(text: str) -> None:
    """Refuse a filter, or one that asks for what infos do not tell.

    Raises:
        InvalidOptionsError: It is none, or asks for facts of the world.
    """
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
