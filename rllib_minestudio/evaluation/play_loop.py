"""A loop that plays whole episodes in one environment, with a scripted agent or a policy."""

import time
from collections.abc import Callable
from typing import Any, Protocol

import gymnasium as gym

from rllib_minestudio.env.agents.scripted import Agent
from rllib_minestudio.evaluation.episode import LONGEST_EPISODE
from rllib_minestudio.foundation.episode_info import ENGINE_ERROR

_STEPS_BETWEEN_MESSAGES = 20


class ActionChooser(Protocol):
    """Something that chooses the actions in one environment."""

    def reset(self) -> None:
        """Forget the previous episode."""

    def act(self, observation: Any) -> Any:
        """Return the action for `observation`."""


class ScriptedPolicy:
    """A scripted agent as an `ActionChooser`."""

    def __init__(self, agent: Agent, env: gym.Env) -> None:
        self._agent = agent
        self._env = env

    def reset(self) -> None:
        """Tell the agent that an episode begins."""
        self._agent.reset()

    def act(self, observation: Any) -> Any:
        """Return the agent's action."""
        return self._agent.act(self._env)


def play_episodes(
    env: gym.Env,
    policy: ActionChooser,
    episodes: int,
    seed: int | None = None,
    on_action: Callable[[Any, float], None] | None = None,
    on_step: Callable[[int, int], None] | None = None,
    on_cut_short: Callable[[str], None] | None = None,
    *,
    max_steps: int = LONGEST_EPISODE,
    max_seconds: float | None = None,
) -> list[float]:
    """Play episodes from start to end, one after the other.

    Args:
        env: The environment; it is not closed.
        policy: Chooses the actions.
        episodes: How many to play.
        seed: Seed of the first reset; None continues the environment's own sequence.
        on_action: Called with (action, return so far) before each step, while the environment still
            shows the observation that the action was chosen for.
        on_step: Called with (episodes finished, steps of the present one) after each step.
        on_cut_short: Called with the error that cut an episode short, which then does not count;
            None: it counts.
        max_steps: Steps after which an episode is truncated.
        max_seconds: Seconds after which no further step is played; an episode that has not ended
            by then does not count.

    Returns:
        The undiscounted return of each episode, of fewer than `episodes` if the time was up.
    """
    returns: list[float] = []
    info: dict[str, Any] = {}
    start = time.monotonic()
    while len(returns) < episodes:
        observation, _ = env.reset(seed=seed if not returns else None)
        policy.reset()
        total, steps, done = 0.0, 0, False
        while not done:
            if max_seconds is not None and time.monotonic() - start >= max_seconds:
                return returns
            action = policy.act(observation)
            if on_action is not None:
                on_action(action, total)
            observation, reward, terminated, truncated, info = env.step(action)
            total += float(reward)
            steps += 1
            done = terminated or truncated or steps >= max_steps
            if on_step is not None:
                on_step(len(returns), steps)
        if on_cut_short is not None and ENGINE_ERROR in info:
            on_cut_short(str(info[ENGINE_ERROR]))
        else:
            returns.append(total)
    return returns


def step_messages(show: Callable[[str], None], episodes: int) -> Callable[[int, int], None]:
    """Return an `on_step` that shows every few steps how far the playing of `episodes` is."""

    def tell(done: int, steps: int) -> None:
        if steps % _STEPS_BETWEEN_MESSAGES == 0:
            show(f"episode {done + 1} of {episodes}, step {steps:,}")

    return tell
