"""RLlib's callbacks of an env runner: episodes, the end of a rollout, environments that were built.

They get RLlib's arguments. Our runner keeps no `SingleAgentEpisode`, which would hold every frame:
`CallbackEpisode` offers the part of it that callbacks read. Nothing is followed, and nothing asked
of the environments, that no callback wants.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Container
from functools import partial
from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.utils import force_list

from rllib_minestudio.algorithms.env_pool import PoolStep
from rllib_minestudio.algorithms.env_pool.base import Infos, StepInfos
from rllib_minestudio.algorithms.env_pool.env_config import EnvConfig

ON_START, ON_STEP, ON_END = "on_episode_start", "on_episode_step", "on_episode_end"


class CallbackEpisode:
    """What a callback sees of a running episode, under the names of RLlib's `SingleAgentEpisode`.

    Args:
        info: What the reset told, plain and small (`env_pool.episode.plain_info`).

    Attributes:
        id_: Unique among all episodes.
        t: Steps so far; `len(episode)` is the same.
        is_terminated: Whether the last step ended it.
        is_truncated: Whether it was cut short, by a time limit or a failure.
        env_error: Why the environment failed, in one line, if that cut it short; else None.
        custom_data: A dict for callbacks to keep things in until the episode ends.
    """

    def __init__(self, info: dict[str, Any]) -> None:
        """Begin the episode now."""
        self.id_ = uuid.uuid4().hex
        self.t = 0
        self.is_terminated = False
        self.is_truncated = False
        self.env_error: str | None = None
        self.custom_data: dict[str, Any] = {}
        self._info = info
        self._reward = 0.0
        self._return = 0.0
        self._started = time.perf_counter()

    def __len__(self) -> int:
        """Steps so far."""
        return self.t

    def __bool__(self) -> bool:
        """True, also before the first step."""
        return True

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self.is_terminated or self.is_truncated

    def get_return(self) -> float:
        """The sum of its rewards so far."""
        return self._return

    def get_rewards(self, indices: int) -> float:
        """The last step's reward, for `indices` -1."""
        return _last("get_rewards", indices, self._reward)

    def get_infos(self, indices: int) -> dict[str, Any]:
        """The last step's info, or the reset's if there was no step, for `indices` -1."""
        return _last("get_infos", indices, self._info)

    def get_duration_s(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self._started

    def __getattr__(self, name: str) -> Any:
        """Say what there is instead.

        Raises:
            AttributeError: Always; only what is not there comes here.
        """
        raise AttributeError(
            f"episode.{name} is not kept: an env runner holds no frames and actions of whole "
            "episodes. There are id_, t, len(episode), get_return(), get_rewards(-1), "
            "get_infos(-1), get_duration_s(), is_done, is_terminated, is_truncated, env_error and "
            "custom_data; `samples` of on_sample_end holds the frames."
        )

    def add_step(self, reward: float, terminated: bool, truncated: bool, told: StepInfos) -> None:
        """Take in one step."""
        self.t += 1
        self._reward = reward
        self._return += reward
        self.is_terminated = terminated
        self.is_truncated = truncated
        self.env_error = told.env_error
        if told.last is not None:
            self._info = told.last


class RunnerCallbacks:
    """Calls the callbacks of an env runner.

    Args:
        runner: The env runner; its config names the callbacks, its `_callbacks` are their objects.

    Attributes:
        infos: Which infos the pool of environments is to tell.
        follows_episodes: Whether there is a callback that wants to be told of episodes.
    """

    def __init__(self, runner: Any) -> None:
        """Find out which callbacks there are."""
        self._runner = runner
        self._running: dict[int, CallbackEpisode] = {}
        wanted = wanted_callbacks(runner.config)
        self.follows_episodes = bool(wanted)
        self.infos = Infos.NONE
        if self.follows_episodes:
            self.infos = Infos.STEPS if ON_STEP in wanted else Infos.EPISODES
        calls: dict[str, Callable[..., None]] = {name: partial(self._call, name) for name in wanted}
        self._on_start = calls.get(ON_START, _nothing)
        self._on_step = calls.get(ON_STEP, _nothing)
        self._on_end = calls.get(ON_END, _nothing)

    def environment_created(self) -> None:
        """Call `on_environment_created`, with the pool of all environments."""
        runner = self._runner
        context = EnvConfig(
            runner.config.env_config,
            worker_index=runner.worker_index or 0,
            vector_index=0,
            num_workers=runner.num_workers or 0,
        )
        self._call("on_environment_created", env=runner.env, env_context=context)

    def sample_end(self, samples: list[Any]) -> None:
        """Call `on_sample_end`, with the fragments of a rollout."""
        self._call("on_sample_end", samples=samples)

    def tell(self, step: PoolStep, playing: Container[int] | None = None) -> None:
        """Call the episode callbacks for what environments answered.

        Args:
            step: From a pool that tells `infos`.
            playing: Environments whose new episodes count; None: all.
        """
        for k, row in enumerate(step.rows.tolist()):
            told = step.infos[row]
            episode = self._running.get(row)
            if step.answered[k] and episode is not None:
                episode.add_step(
                    float(step.reward[k]), bool(step.terminated[k]), bool(step.truncated[k]), told
                )
                self._on_step(episode, row)
                if episode.is_done:
                    self._on_end(episode, row, prev_episode_chunks=[])
                    del self._running[row]
            if told.first is not None:
                self._running.pop(row, None)
                if playing is None or row in playing:
                    self._running[row] = CallbackEpisode(told.first)
                    self._on_start(self._running[row], row)

    def _call(
        self, name: str, episode: CallbackEpisode | None = None, row: int = 0, **arguments: Any
    ) -> None:
        runner = self._runner
        if episode is not None:
            arguments.update(
                episode=episode, env=runner.env, rl_module=runner.module, env_index=row
            )
        make_callback(
            name,
            callbacks_objects=runner._callbacks,
            callbacks_functions=getattr(runner.config, f"callbacks_{name}"),
            kwargs={"env_runner": runner, "metrics_logger": runner.metrics, **arguments},
        )


def wanted_callbacks(config: AlgorithmConfig) -> set[str]:
    """Return which of the episode callbacks a config has that do anything."""
    return {
        name
        for name in (ON_START, ON_STEP, ON_END)
        if getattr(config, f"callbacks_{name}")
        or any(
            getattr(callbacks, name) is not getattr(RLlibCallback, name)
            for callbacks in force_list(config.callbacks_class)
        )
    }


def _nothing(*_: Any, **__: Any) -> None:
    """Stand in for a callback that nobody wants."""


def _last(method: str, indices: int, value: Any) -> Any:
    if indices != -1:
        raise IndexError(
            f"episode.{method}({indices!r}): only the last step is kept, which is -1; keep what "
            "you need of the others in episode.custom_data."
        )
    return value
