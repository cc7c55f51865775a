"""MineStudio's `EpisodePipeline`, with its arguments, on this package's machinery.

    pipeline = EpisodePipeline(
        MineGenerator(env_config={...}, checkpoint="...", num_workers=4, num_episodes=25),
        InfoBaseFilter(key="mine_block", regex=".*diamond_ore.*", num=1),
    )
    summary = pipeline.run()

In place of functions that build an environment and an agent, which MineStudio ships to its
workers, it takes the options of `MineStudioEnv` and a checkpoint. An episode ends when its task
does; MineStudio's goes on to `num_max_steps` through any number of deaths.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ray
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_minestudio.evaluation.episode import STATUS, EvaluatedEpisode
from rllib_minestudio.evaluation.evaluate import environment_identity
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.evaluation.evaluation_summary import Summary
from rllib_minestudio.evaluation.filters import EpisodeFilter
from rllib_minestudio.evaluation.policy_loading import evaluation_config, load_policy
from rllib_minestudio.evaluation.workers import play_episodes

MINESTUDIO = "minestudio"


class MineGenerator:
    """Plays episodes in parallel; the arguments are those of MineStudio's `MineGenerator`."""

    def __init__(
        self,
        checkpoint: str,
        *,
        env_config: Mapping[str, Any] | None = None,
        num_workers: int = 1,
        num_gpus: float = 0.0,
        max_restarts: int = 3,
        num_max_steps: int | None = None,
        num_episodes: int = 1,
        tmpdir: str | None = None,
        image_media: str = "h264",
        format: str = MINESTUDIO,
        seed: int = 0,
        deterministic: bool = False,
    ) -> None:
        """Check the arguments; nothing is started before `generate`.

        Args:
            checkpoint: Of the policy, as `rllib train` saves it.
            env_config: Options of the environment that replace those it was trained with.
            num_workers: Env runners, each in a process of its own.
            num_gpus: Share of a GPU per worker.
            max_restarts: How often an episode is begun again after its environment has failed.
            num_max_steps: Steps after which an episode is truncated.
            num_episodes: Episodes per worker, as in MineStudio.
            tmpdir: Where they are recorded; None records nothing.
            image_media: `h264` or `jpeg`.
            format: `minestudio` for the files of MineStudio's worker, or `episodes`.
            seed: What the episodes derive from; the same seed gives the same episodes.
            deterministic: Take the most probable actions.

        Raises:
            InvalidOptionsError: An argument is wrong; lists all problems.
            CheckpointMismatchError: The checkpoint holds no such policy.
        """
        record = None
        if tmpdir is not None:
            record = {"folder": tmpdir, "format": format, "media": image_media}
        self.options = EvaluationOptions.from_mapping(
            {
                "episodes": num_workers * num_episodes,
                "seed": seed,
                "deterministic": deterministic,
                "max_steps": num_max_steps,
                "max_attempts": 1 + max_restarts,
                "record": record,
            }
        )
        self._policy = load_policy(checkpoint)
        if env_config is not None:
            self._policy.config.environment(env_config=dict(env_config))
        self._config = evaluation_config(
            self._policy.config, num_env_runners=num_workers, num_gpus=num_gpus
        )

    @property
    def facts(self) -> dict[str, Any]:
        """What a summary says about the episodes' origin."""
        return {
            "seed": self.options.seed,
            "policy": {**self._policy.identity, "deterministic": self.options.deterministic},
            "config": environment_identity(self._config, self.options),
        }

    def generate(self) -> Iterator[EvaluatedEpisode]:
        """Play all episodes and yield each as it ends; starts Ray if it does not run."""
        if not ray.is_initialized():
            ray.init(include_dashboard=False)
        group = EnvRunnerGroup(config=self._config, local_env_runner=False)
        try:
            settings = self.options.settings(self.facts["policy"])
            yield from play_episodes(group, self.options.episodes, settings, self._policy.weights)
        finally:
            group.stop()


class EpisodeRecorder:
    """Takes the labelled episodes in and sums them up; MineStudio's counts what is `yes`."""

    def record(self, episodes: Iterable[EvaluatedEpisode], **facts: Any) -> Summary:
        """Sum up episodes that come in any order."""
        return Summary.of(episodes, **facts)


class EpisodePipeline:
    """Generates, filters and records episodes, one at a time."""

    def __init__(
        self,
        episode_generator: Any,
        episode_filter: EpisodeFilter | Sequence[EpisodeFilter] | None = None,
        episode_recorder: EpisodeRecorder | None = None,
    ) -> None:
        """Put the parts together.

        Args:
            episode_generator: Has `generate()`, which yields episodes.
            episode_filter: One or several; each writes its label. Of those with one label, an
                episode has to pass one, as in MineStudio; combine them with `&` otherwise.
            episode_recorder: What makes a summary of the labelled episodes.
        """
        self.episode_generator = episode_generator
        filters = episode_filter if isinstance(episode_filter, Sequence) else [episode_filter]
        by_label: dict[str, EpisodeFilter] = {}
        for one in filters:
            if one is not None:
                known = by_label.get(one.label)
                by_label[one.label] = one if known is None else _either(known, one)
        self.episode_filter = by_label
        self.episode_recorder = episode_recorder or EpisodeRecorder()

    def run(self) -> dict[str, Any]:
        """Run to the end; returns the summary, MineStudio's `num_yes`, `num_episodes` first."""
        started = time.perf_counter()
        episodes = self.episode_generator.generate()
        for episode_filter in self.episode_filter.values():
            episodes = episode_filter.filter(episodes)
        status = self.episode_filter.get(STATUS)
        summary = self.episode_recorder.record(
            episodes,
            filter=None if status is None else str(status),
            **getattr(self.episode_generator, "facts", {"seed": 0}),
        )
        return replace(summary, seconds=time.perf_counter() - started).to_json()


def _either(one: EpisodeFilter, other: EpisodeFilter) -> EpisodeFilter:
    both = one | other
    both.label = one.label
    return both
