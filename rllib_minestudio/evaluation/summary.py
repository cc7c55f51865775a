"""The summary of an evaluation, and the comparison of two evaluations of the same worlds."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator
from scipy.stats import binomtest, permutation_test
from typing_extensions import Self

from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_options import SUMMARY_FILE
from rllib_minestudio.foundation.documents import (
    Contradiction,
    Count,
    Document,
    Few,
    First,
    Interval,
    ListOf,
    MappingOf,
    Measure,
    Measured,
    Seconds,
    Seed,
    Share,
    Text,
    given,
    read_document,
)
from rllib_minestudio.foundation.files import SmallFileError, write_whole
from rllib_minestudio.foundation.options import MANY

CONFIDENCE = 0.95
_LARGEST = 1024**3
"""Most bytes of a summary file, enough for a million episodes."""

FORMAT = "rllib_minestudio.evaluation"
VERSION = 1


@dataclass(frozen=True)
class Rate:
    """A success rate.

    Attributes:
        num_yes: Number of successes.
        num_episodes: Number of episodes.
    """

    num_yes: int
    num_episodes: int

    @property
    def yes_rate(self) -> float:
        """Share of successes, in [0, 1]."""
        return self.num_yes / self.num_episodes

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval of the true rate, at `CONFIDENCE`.

        It keeps its coverage for few episodes and extreme rates, where the usual normal
        approximation is empty or leaves [0, 1] (Wilson 1927; Brown, Cai and DasGupta 2001).
        """
        found = binomtest(self.num_yes, self.num_episodes).proportion_ci(
            confidence_level=CONFIDENCE, method="wilson"
        )
        return float(found.low), float(found.high)

    @classmethod
    def of(cls, episodes: Sequence[EvaluatedEpisode]) -> Rate:
        """Count the successes of at least one episode."""
        return cls(sum(episode.counts_as_success for episode in episodes), len(episodes))


@dataclass(frozen=True)
class Summary:
    """The outcome of an evaluation, with the identity of policy and environment.

    Attributes:
        episodes: All episodes, ordered by index; at least one.
        seed: Seed of the evaluation.
        filter: The filter that decided success; None if the tasks did.
        policy: The policy: checkpoint, digest of its weights, and how it acted.
        config: The environment: its name, options, and their digest.
        seconds: Total wall time.
    """

    episodes: tuple[EvaluatedEpisode, ...]
    seed: int
    filter: str | None
    policy: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def has_success(self) -> bool:
        """Whether success is defined, by a filter or by the tasks."""
        return self.filter is not None or any(e.success is not None for e in self.episodes)

    @property
    def rate(self) -> Rate:
        """The success rate over all episodes."""
        return Rate.of(self.episodes)

    @property
    def tasks(self) -> dict[str, list[EvaluatedEpisode]]:
        """The episodes by task name, in alphabetical order."""
        names = sorted({episode.task for episode in self.episodes})
        return {name: [e for e in self.episodes if e.task == name] for name in names}

    @property
    def failures(self) -> list[EvaluatedEpisode]:
        """Episodes that failed in all attempts; they do not count as successes."""
        return [episode for episode in self.episodes if episode.error is not None]

    @property
    def repeated_attempts(self) -> int:
        """How many attempts were repeated because an environment failed."""
        return sum(episode.attempts - 1 for episode in self.episodes)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, starting with the keys of MineStudio's summary."""
        return {
            **self._numbers(self.episodes),
            "tasks": {name: self._numbers(group) for name, group in self.tasks.items()},
            "seed": self.seed,
            "filter": self.filter,
            "policy": dict(self.policy),
            "config": dict(self.config),
            "seconds": round(self.seconds, 3),
            "repeated_attempts": self.repeated_attempts,
            "failed_episodes": len(self.failures),
            "format": FORMAT,
            "version": VERSION,
            "episodes": [episode.to_json() for episode in self.episodes],
        }

    def _numbers(self, episodes: Sequence[EvaluatedEpisode]) -> dict[str, Any]:
        rate = Rate.of(episodes)
        known = self.has_success
        return {
            "num_yes": rate.num_yes if known else None,
            "num_episodes": rate.num_episodes,
            "yes_rate": rate.yes_rate if known else None,
            "yes_rate_interval": list(rate.interval) if known else None,
            "confidence": CONFIDENCE,
            "episode_return": spread([e.undiscounted_return for e in episodes]),
            "episode_length": spread([e.length for e in episodes]),
            "episode_seconds": spread([e.seconds for e in episodes]),
        }

    @classmethod
    def of(cls, episodes: Iterable[EvaluatedEpisode], **facts: Any) -> Summary:
        """Build the summary of episodes in any order; `facts` are the other attributes."""
        return cls(tuple(sorted(episodes, key=lambda episode: episode.index)), **facts)

    @classmethod
    def load(cls, path: str | Path) -> Summary:
        """Load a saved summary.

        Args:
            path: The file, or the folder that contains it as `summary.json`.

        Raises:
            MineStudioError: There is no summary, or it has another format.
        """
        file = Path(path)
        file = file / SUMMARY_FILE if file.is_dir() else file
        try:
            told = read_document(file, SummaryDocument, _LARGEST)
        except (OSError, SmallFileError) as error:
            raise MineStudioError(
                f"{str(path)!r} is not the summary of an evaluation: {error}."
            ) from error
        return cls.of(
            (EvaluatedEpisode(**dict(episode)) for episode in told.episodes),
            seed=told.seed,
            filter=told.filter,
            policy=given(told.policy),
            config=given(told.config),
            seconds=told.seconds,
        )

    def save(self, file: Path) -> None:
        """Write `to_json` to a file, atomically."""
        write_whole(file, json.dumps(self.to_json(), indent=2) + "\n")


# -------------------------------------------------------------- what the file of a summary may hold


class SpreadDocument(Document):
    """What `spread` returns."""

    mean: Measure
    std: Measure
    min: Measure
    median: Measure
    max: Measure


class NumbersDocument(Document):
    """The numbers of some episodes, for other programs: this one computes them again."""

    num_yes: Few | None
    num_episodes: Few
    yes_rate: Share | None
    yes_rate_interval: Interval | None
    confidence: Share
    episode_return: SpreadDocument
    episode_length: SpreadDocument
    episode_seconds: SpreadDocument

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.num_yes is not None and self.num_yes > self.num_episodes:
            raise Contradiction(
                f"num_yes must be at most num_episodes; got {self.num_yes} of {self.num_episodes}"
            )
        return self


class EvaluatedEpisodeDocument(Document):
    """The fields of `EvaluatedEpisode` without its infos."""

    index: Few
    seed: Seed
    task: Text
    length: Count
    undiscounted_return: Measure
    success: bool | None
    terminated: bool
    truncated: bool
    seconds: Seconds
    attempts: Few
    error: Text | None
    recording: Text | None
    recording_error: Text | None
    labels: MappingOf[Text]


class PolicyDocument(Document):
    """The policy, or the agent, which has facts of its own."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Measured]

    checkpoint: Text | None = None
    weights: Text | None = None
    deterministic: bool | None = None


class ConfigDocument(Document):
    """The environment: what decides whether evaluations can be compared, and its options."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Measured]

    digest: Text | None = None
    rules: Few | None = None


class SummaryDocument(NumbersDocument):
    """`summary.json`."""

    format: Literal["rllib_minestudio.evaluation"]
    version: First
    tasks: Annotated[dict[Text, NumbersDocument], Field(max_length=MANY)]
    seed: Seed
    filter: Text | None
    policy: PolicyDocument
    config: ConfigDocument
    seconds: Seconds
    repeated_attempts: Count
    failed_episodes: Few
    episodes: Annotated[ListOf[EvaluatedEpisodeDocument], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_each_once(self) -> Self:
        if len({episode.index for episode in self.episodes}) < len(self.episodes):
            raise Contradiction("each episode must be there once")
        if self.num_episodes != len(self.episodes):
            raise Contradiction(
                f"num_episodes must be {len(self.episodes)}, the number of its episodes; got "
                f"{self.num_episodes}"
            )
        return self


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return mean, sample standard deviation, min, median and max of at least one number."""
    mean = math.nan if any(map(math.isnan, values)) else sum(values) / len(values)
    known = math.isfinite(mean)
    return {
        "mean": statistics.fmean(values) if known else mean,
        "std": 0.0 if len(values) == 1 else statistics.stdev(values) if known else math.nan,
        "min": min(values),
        "median": statistics.median(values),
        "max": max(values),
    }


# ---------------------------------- compares two evaluations of the same worlds, episode by episode

RESAMPLES = 9999


class Met(Protocol):
    """What decides whether evaluations can be compared: a `Summary`, or what will become one."""

    @property
    def seed(self) -> int:
        """Seed of the evaluation."""

    @property
    def filter(self) -> str | None:
        """When an episode counts as a success."""

    @property
    def config(self) -> Mapping[str, Any]:
        """The environment, with the `digest` of its options."""


class Numbered(Protocol):
    """An episode that can be paired by its index."""

    @property
    def index(self) -> int:
        """Which of the evaluation's episodes it is."""


Played = TypeVar("Played", bound=Numbered)


@dataclass(frozen=True)
class PairedComparison:
    """A comparison of a new evaluation with an old one, paired by episode.

    Attributes:
        pairs: Number of episodes that both contain.
        only_new: Number of episodes that only the new policy solved.
        only_old: Number of episodes that only the old policy solved.
        success_p: p-value of "both succeed equally often"; None if success is not defined.
        return_difference: Mean of new minus old return.
        return_p: p-value of "returns do not differ".
    """

    pairs: int
    only_new: int
    only_old: int
    success_p: float | None
    return_difference: float
    return_p: float

    tests = (
        "success: exact McNemar test on the episodes that one solved and the other did not; "
        f"return: sign-flip permutation test of the paired differences, {RESAMPLES} resamples; "
        "both two-sided"
    )

    @property
    def verdict(self) -> str:
        """The results and the tests, in two sentences."""
        success = "" if self.success_p is None else f" (p = {self.success_p:.3g})"
        return (
            f"{self.pairs} paired episodes; solved by the new policy only {self.only_new}, by the "
            f"old one only {self.only_old}{success}; return, new minus old: "
            f"{self.return_difference:+.3f} (p = {self.return_p:.3g}).\n{self.tests}."
        )

    def save(self, file: Path) -> None:
        """Write all fields as JSON, atomically."""
        write_whole(file, json.dumps({**asdict(self), "tests": self.tests}, indent=2) + "\n")


def compare(new: Summary, old: Summary) -> PairedComparison:
    """Compare two evaluations of the same episodes.

    Pairing removes the variance due to easy and hard episodes, so far fewer of them are needed than
    for a comparison of independent rates.

    Raises:
        MineStudioError: Their worlds or their definitions of success differ, or they share no
            episode.
    """
    require_same_worlds(new, old)
    pairs = paired_episodes(new.episodes, old.episodes)
    if not pairs:
        raise MineStudioError("The evaluations cannot be compared: no episode is in both.")
    only_new = sum(x.counts_as_success and not y.counts_as_success for x, y in pairs)
    only_old = sum(y.counts_as_success and not x.counts_as_success for x, y in pairs)
    known = new.has_success and old.has_success
    returns = paired_returns(new, old)
    differences = returns[:, 0] - returns[:, 1]
    return PairedComparison(
        pairs=len(pairs),
        only_new=only_new,
        only_old=only_old,
        success_p=mcnemar(only_new, only_old) if known else None,
        return_difference=float(differences.mean()) if len(differences) else math.nan,
        return_p=_paired_p(returns[:, 0], returns[:, 1]),
    )


def paired_episodes(new: Iterable[Played], old: Iterable[Played]) -> list[tuple[Played, Played]]:
    """Return the episodes that are in both, as (new, old) pairs."""
    theirs = {episode.index: episode for episode in old}
    return [(e, theirs[e.index]) for e in new if e.index in theirs]


def paired_returns(new: Summary, old: Summary) -> NDArray[np.float64]:
    """Return the [pairs, 2] returns of the new and the old policy, without infinite ones."""
    returns = np.array(
        [
            [x.undiscounted_return, y.undiscounted_return]
            for x, y in paired_episodes(new.episodes, old.episodes)
        ],
        np.float64,
    ).reshape(-1, 2)
    return returns[np.isfinite(returns).all(axis=1)]


def require_same_worlds(a: Met, b: Met) -> None:
    """Refuse two evaluations that cannot be compared; they need not have been played yet.

    Raises:
        MineStudioError: Their worlds or their definitions of success differ.
    """
    problems = []
    if a.seed != b.seed:
        problems.append(f"their seeds differ ({a.seed} and {b.seed})")
    rules = [met.config.get("rules") for met in (a, b)]
    if rules[0] != rules[1]:
        said = [f"revision {one}" if one is not None else "no revision" for one in rules]
        problems.append(f"the embedded engine's rules have changed ({' and '.join(said)})")
    elif a.config.get("digest") != b.config.get("digest"):
        problems.append("their environments or their options differ")
    if a.filter != b.filter:
        problems.append(f"their filters differ ({a.filter!r} and {b.filter!r})")
    if problems:
        raise MineStudioError(
            f"The evaluations cannot be compared: {'; '.join(problems)}. Evaluate both with the "
            "same --seed, --filter and environment."
        )


def mcnemar(only_new: int, only_old: int) -> float:
    """Return McNemar's exact two-sided p-value, with each discordant pair a fair coin."""
    discordant = only_new + only_old
    return float(binomtest(only_new, discordant, 0.5).pvalue) if discordant else 1.0


def _paired_p(a: np.ndarray, b: np.ndarray) -> float:
    """Return the two-sided p-value of the mean difference under random swaps within pairs."""
    if len(a) < 2 or np.array_equal(a, b):
        return 1.0  # one pair is no evidence
    found = permutation_test(
        (a, b),
        lambda x, y, axis: np.mean(y - x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)
