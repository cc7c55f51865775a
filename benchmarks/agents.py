"""What anybody's agent pays per step for being played through the adapter.

    python benchmarks/agents.py [--steps 1000] [--repeats 3]

Agents that answer at once, one for each interface, play the cow task at 64x64. They are called and
the environment is stepped with what they answer; then the same in an environment beside it through
`AgentPlays.act` under a `Watch`, as `AgentRunner` does it. The two take turns step by step, and the
actions are equal, so that both see the same frames. What is added is the median of the differences
of a step and the one beside it, in CPU time of the thread; its range is over the repeats. Required:
less than 200 µs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.console import Console
from rich.table import Table

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.agents.user_agents import AgentMaker, AgentPlays
from rllib_minestudio.evaluation.agent_runner import TIMEOUT_S, Watch

COW = Path(__file__).parents[1] / "tuned_examples" / "cow.yaml"
REQUIRED_US = 200
WARMUP = 100
ENVS = 4
"""Side by side, for the agent that takes batches."""

FORWARD = {"forward": 1, "camera": (0.0, 0.0)}  # as a token it is no rounder


def tokens() -> dict[str, Any]:
    """An answer in tokens."""
    return {"buttons": np.array([3]), "camera": np.array([61])}


class GetAction:
    """MineStudio 1."""

    def get_action(self, obs: Any, memory: Any, input_shape: str = "*") -> Any:
        """Answer."""
        return tokens(), memory


class WithState:
    """MineStudio 2."""

    def initial_state(self) -> Any:
        """Begin."""
        return 0

    def act(self, observation: Any, state: Any = None, *, deterministic: bool = False) -> Any:
        """Answer."""
        return tokens(), state


class Predict:
    """stable-baselines3."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> Any:
        """Answer."""
        return tokens(), state


class Plain:
    """Many others."""

    def act(self, obs: Any) -> Any:
        """Answer."""
        return tokens()


class Keys:
    """Answers in keys, which become tokens."""

    def act(self, obs: Any) -> Any:
        """Answer."""
        return FORWARD


class Looking:
    """Looks at the environment itself."""

    def act(self, env: Any) -> Any:
        """Answer."""
        return tokens()


class Batches:
    """Computes for several."""

    takes_batches = True

    def act(self, observations: Any, begins: Any) -> Any:
        """Answer."""
        return {"buttons": np.full(len(begins), 3), "camera": np.full(len(begins), 61)}


Direct = Callable[[Any, Any, MineStudioEnv], Any]
FIRST = np.ones(1, np.bool_)

INTERFACES: dict[str, tuple[type, Direct]] = {
    "get_action(obs, memory)": (
        GetAction,
        lambda agent, obs, env: agent.get_action(obs, None, input_shape="*")[0],
    ),
    "act(observation, state)": (WithState, lambda agent, obs, env: agent.act(obs, 0)[0]),
    "predict(obs, state, episode_start)": (
        Predict,
        lambda agent, obs, env: agent.predict(obs, None, FIRST, False)[0],
    ),
    "act(obs)": (Plain, lambda agent, obs, env: agent.act(obs)),
    "act(obs), answers in keys": (Keys, lambda agent, obs, env: agent.act(obs)),
    "act(env)": (Looking, lambda agent, obs, env: agent.act(env)),
}
BATCHES = f"act(observations, begins) for {ENVS}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    table = Table("interface", "step, direct", "step, adapted", "added", "min", "max")
    table.title = "µs of CPU time per environment step, medians"
    for name, (kind, direct) in INTERFACES.items():
        runs = [alone(kind, direct, arguments.steps) for _ in range(arguments.repeats)]
        add_row(table, name, runs)
    runs = [side_by_side(arguments.steps // ENVS) for _ in range(arguments.repeats)]
    add_row(table, BATCHES, runs)
    Console(width=110).print(table)


def add_row(table: Table, name: str, runs: list[np.ndarray]) -> None:
    """Sum up runs: (steps, 2) seconds of a step, direct and adapted."""
    times = np.concatenate(runs) * 1e6
    added = [float(np.median((run[:, 1] - run[:, 0]) * 1e6)) for run in runs]
    cells = [np.median(times[:, 0]), np.median(times[:, 1]), statistics.median(added)]
    met = "" if max(added) < REQUIRED_US else " (required: less)"
    numbers = [f"{number:.0f}" for number in (*cells, min(added), max(added))]
    table.add_row(name, *numbers[:-1], numbers[-1] + met)


def make_env(action_type: str = "agent") -> MineStudioEnv:
    """The cow task."""
    (experiment,) = yaml.safe_load(COW.read_text()).values()
    return MineStudioEnv(
        {**experiment["config"]["env_config"], "seed": 0, "action_type": action_type}
    )


def alone(kind: type, direct: Direct, steps: int) -> np.ndarray:
    """Time steps of an agent that plays one environment."""
    agent = kind()
    ours, theirs = make_env(), make_env("env" if kind is Keys else "agent")
    playing, watch = AgentPlays(AgentMaker.of(kind)), Watch(ends_hung=True)
    seconds = np.zeros((WARMUP + steps, 2))
    done, episode = True, 0
    with watch():
        for row in seconds:
            if done:
                episode += 1
                obs, _ = theirs.reset(seed=episode)
                seen, _ = ours.reset(seed=episode)
                playing.begin(ours, episode)
            started = time.thread_time()
            obs, *_, terminated, truncated, _ = theirs.step(direct(agent, obs, theirs))
            between = time.thread_time()
            with watch.limit(TIMEOUT_S):
                action = playing.act(seen)
            seen, *_ = ours.step(action)
            row[:] = between - started, time.thread_time() - between
            done = terminated or truncated
    assert np.array_equal(obs["image"], seen["image"])
    return seconds[WARMUP:]


def side_by_side(steps: int) -> np.ndarray:
    """Time steps of an agent that plays several; seconds per environment."""
    agent = Batches()
    ours, theirs = ([make_env() for _ in range(ENVS)] for _ in range(2))
    playing, watch = AgentPlays(AgentMaker.of(Batches)), Watch(ends_hung=True)
    seconds = np.zeros((WARMUP + steps, 2))
    begins, episode = np.ones(ENVS, np.bool_), 0
    observations: list[list[Any]] = [[None] * ENVS, [None] * ENVS]
    with watch():
        for row in seconds:
            for i in np.flatnonzero(begins):
                episode += 1
                for seen, envs in zip(observations, (theirs, ours), strict=True):
                    seen[i], _ = envs[i].reset(seed=episode)
                playing.begin(ours[i], episode)
            started = time.thread_time()
            images = np.stack([obs["image"] for obs in observations[0]])
            answer = agent.act({"image": images}, begins)
            ended = np.zeros(ENVS, np.bool_)
            for i, env in enumerate(theirs):
                action = {name: values[i] for name, values in answer.items()}
                observations[0][i], *_, terminated, truncated, _ = env.step(action)
                ended[i] = terminated or truncated
            between = time.thread_time()
            with watch.limit(TIMEOUT_S):
                actions = playing.act_in_all(observations[1], begins)
            for i, (env, action) in enumerate(zip(ours, actions, strict=True)):
                observations[1][i], *_ = env.step(action)
            row[:] = between - started, time.thread_time() - between
            begins = ended
    return seconds[WARMUP:] / ENVS


if __name__ == "__main__":
    main()
