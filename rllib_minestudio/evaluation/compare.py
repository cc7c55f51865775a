"""Compares two evaluations that met the same worlds, episode by episode."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, permutation_test

from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.evaluation_summary import Summary
from rllib_minestudio.whole_file import write_whole

RESAMPLES = 9999


class Met(Protocol):
    """What decides which worlds an evaluation meets: a `Summary`, or what will become one."""

    @property
    def seed(self) -> int:
        """Of the evaluation."""

    @property
    def filter(self) -> str | None:
        """When an episode counts as a success."""

    @property
    def config(self) -> Mapping[str, Any]:
        """With the `digest` of environment and options."""


class Numbered(Protocol):
    """An episode, as far as it can be found in another evaluation."""

    @property
    def index(self) -> int:
        """Which of the evaluation's episodes it is."""


Played = TypeVar("Played", bound=Numbered)


@dataclass(frozen=True)
class PairedComparison:
    """A new evaluation beside an old one, paired by episode.

    Attributes:
        pairs: Episodes that both played.
        only_new: Successes of the new one in episodes that the old one failed.
        only_old: Successes of the old one in episodes that the new one failed.
        success_p: p-value of "both succeed equally often"; None if nothing says what success is.
        return_difference: Mean of the new return minus the old.
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
        """The numbers in two sentences."""
        success = "" if self.success_p is None else f" (p = {self.success_p:.3g})"
        return (
            f"{self.pairs} paired episodes; solved by the new policy only {self.only_new}, by the "
            f"old one only {self.only_old}{success}; return, new minus old: "
            f"{self.return_difference:+.3f} (p = {self.return_p:.3g}).\n{self.tests}."
        )

    def save(self, file: Path) -> None:
        """Write all fields as JSON; the file appears as a whole."""
        write_whole(file, json.dumps({**asdict(self), "tests": self.tests}, indent=2) + "\n")


def compare(new: Summary, old: Summary) -> PairedComparison:
    """Compare two evaluations of the same episodes.

    The pairing takes out what makes some episodes easy and others hard, so that far fewer of them
    are needed than to tell two independent rates apart.

    Raises:
        MineStudioError: They did not meet the same worlds, or judged success differently.
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
    """The episodes that are in both, each as the new policy and as the old one played it."""
    theirs = {episode.index: episode for episode in old}
    return [(e, theirs[e.index]) for e in new if e.index in theirs]


def paired_returns(new: Summary, old: Summary) -> NDArray[np.float64]:
    """Returns [pairs, 2] of the new policy and of the old; infinite ones have no difference."""
    returns = np.array(
        [
            [x.undiscounted_return, y.undiscounted_return]
            for x, y in paired_episodes(new.episodes, old.episodes)
        ],
        np.float64,
    ).reshape(-1, 2)
    return returns[np.isfinite(returns).all(axis=1)]


def require_same_worlds(a: Met, b: Met) -> None:
    """Refuse two evaluations that cannot be compared; before either is played, if need be.

    Raises:
        MineStudioError: They do not meet the same worlds, or judge success differently.
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
    """Exact two-sided p-value: under "no difference", each discordant pair is a fair coin."""
    discordant = only_new + only_old
    return float(binomtest(only_new, discordant, 0.5).pvalue) if discordant else 1.0


def _paired_p(a: np.ndarray, b: np.ndarray) -> float:
    """Two-sided p-value of the mean difference under random swaps within pairs."""
    if len(a) < 2 or np.array_equal(a, b):
        return 1.0  # one pair tells nothing
    found = permutation_test(
        (a, b),
        lambda x, y, axis: np.mean(y - x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)
