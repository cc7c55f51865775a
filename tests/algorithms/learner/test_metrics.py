"""docs/metrics.md lists every metric: what it lists appears, and what appears is listed."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from ray.rllib.core.learner.training_data import TrainingData
from ray.tune.utils import flatten_dict

from rllib_minestudio.algorithms.learner.gradient_step import Peers
from rllib_minestudio.algorithms.learner.training_pass import IterationMetrics
from tests.algorithms.toy_envs import AttackOnRed
from tests.correctness.harness import Harness, config_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"

ROW = re.compile(r"^\| `([^`]+)` \|([^|]*)\|([^|]*)\|")

RLLIBS_OWN = re.compile(
    r"num_(agent|module)_steps_|num_(non_)?trainable_parameters"
    r"|^timers/(training_step|training_iteration|restore_env_runners)$"
)
"""Told in the document's prose."""

OUR_GROUPS = ("env_runners", "learners", "replay_buffer", "busy_fraction", "restarts", "timers")


def documented() -> dict[str, str]:
    """Path -> when it is reported; empty for always."""
    rows = [ROW.match(line) for line in DOCUMENT.read_text().splitlines()]
    found = [(row[1], row[3].strip()) for row in rows if row is not None]
    assert len(found) == len(dict(found)), "a metric is listed twice"
    return dict(found)


def pattern(path: str) -> re.Pattern[str]:
    """What paths a documented path stands for."""
    text = re.escape(path).replace("<n>", r"\d+").replace("<task>", "[^/]+")
    return re.compile(f"^{text}$")


def reported(config) -> set[str]:
    """The paths of all that a short training reports."""
    algorithm = config.build_algo()
    paths: set[str] = set()
    for _ in range(2):
        result = algorithm.train()
        result.pop("config")
        paths |= set(flatten_dict(result, delimiter="/"))
    algorithm.stop()
    return paths


@pytest.mark.parametrize("num_env_runners", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_metrics_are_those_of_the_document(local_ray, make_config, num_env_runners):
    config = make_config(fragments_per_iteration=8, num_epochs=1)
    paths = reported(config.env_runners(num_env_runners=num_env_runners))
    expected = {"", "unless `prior` is null", *(["remote"] if num_env_runners else [])}
    listed = documented()
    missing = [
        path
        for path, when in listed.items()
        if when in expected and not any(pattern(path).match(name) for name in paths)
    ]
    assert not missing
    ours = [name for name in paths if name.split("/")[0] in OUR_GROUPS]
    known = [pattern(path) for path in listed]
    unlisted = [
        name
        for name in ours
        if not RLLIBS_OWN.search(name) and not any(known_.match(name) for known_ in known)
    ]
    assert not unlisted
    assert len(ours) > 70


def test_an_iteration_trained_on_the_buffer_alone_counts_no_steps(local_ray, make_config):
    config = make_config(
        fragments_per_iteration=4,
        num_epochs=1,
        replay_buffer={"max_fragments": 64, "max_staleness": 1},
    )
    algorithm = config.build_algo()
    results = [algorithm.train() for _ in range(4)]
    algorithm.stop()
    rollout = config.num_envs_per_env_runner * config.rollout_fragment_length
    ended = [8, 0, 16, 0]  # fragments are of 32 steps, episodes of 20
    for result, steps, episodes in zip(results, [rollout, 0, rollout, 0], ended, strict=True):
        counts = result["env_runners"]
        assert counts["num_env_steps_sampled"] == steps
        assert counts["num_agent_steps_sampled"] == {"default_agent": steps}
        assert counts["num_module_steps_sampled"] == {"default_policy": steps}
        assert counts["num_episodes"] == episodes
        assert result["learners"]["__all_modules__"]["num_env_steps_trained"] == rollout / 2
    assert results[-1]["env_runners"]["num_env_steps_sampled_lifetime"] == 2 * rollout


def test_fragments_are_counted_where_two_make_a_sequence():
    """Of three sequences one was lost, one is too stale, and one is stale but not too much."""
    harness = Harness(
        config_of(
            AttackOnRed,
            num_envs=3,
            fragments_per_iteration=6,
            replay_buffer={"max_fragments": 64, "max_staleness": 3, "fragments_per_chunk": 2},
        )
    )
    versions = [3, 3, 0, 0, 1, 1]
    fragments = [
        replace(fragment, weights_version_min=version, weights_version_max=version)
        for fragment, version in zip(harness.play(rollouts=2), versions, strict=True)
    ]
    learner = harness.learner
    learner._follow_published(4)
    learner._collected = IterationMetrics(Peers(1))
    loaded = learner._loader.load(TrainingData(episodes=fragments))
    learner._prepare(replace(loaded, lost=[True, False, False]))
    harness.close()
    counts = learner._collected.counts
    names = ("dropped_unreadable", "dropped_stale", "recomputed_fragments", "dropped_nonfinite")
    assert {name: counts[name] for name in names} == {
        "dropped_unreadable": 2,
        "dropped_stale": 2,
        "recomputed_fragments": 2,
        "dropped_nonfinite": 0,
    }


def test_staleness_is_counted_in_shares_and_the_last_bucket_holds_the_rest():
    metrics = IterationMetrics(Peers(1))
    metrics.add_staleness([])
    assert metrics.scalars == {}
    metrics.add_staleness([0, 0, 3, 20])
    shares = {0: 0.5, 3: 0.25, 8: 0.25}
    assert metrics.scalars == {
        "staleness_mean": 5.75,
        "staleness_max": 20,
        **{f"staleness_histogram/{i}": shares.get(i, 0.0) for i in range(9)},
    }


def test_stages_are_timed_in_seconds_and_added_up():
    metrics = IterationMetrics(Peers(1))
    for _ in range(2):
        with metrics.timed("loss"):
            time.sleep(0.01)
    assert 0.02 <= metrics.seconds["loss"] < 5
