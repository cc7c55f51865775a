"""Has a scripted agent play episodes of a task and records them, in several processes.

An episode depends on its seed alone, so it does not matter which process plays it, or when:
recording goes on where it was interrupted, and gives what it would have given.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np

from rllib_minestudio.demonstrations.windows import IMITATED_FROM, TAKEOVER
from rllib_minestudio.env.agents.foreign import (
    AgentMaker,
    AgentPlays,
    WatchedAgent,
    is_agent_path,
)
from rllib_minestudio.env.agents.hunter import BODIES
from rllib_minestudio.env.agents.scripted import Successor, make_agent
from rllib_minestudio.env.agents.toolmaker import DEFAULT_GOAL, knowledge
from rllib_minestudio.env.recorder import (
    RECORDING,
    RECORDING_ERROR,
    EpisodeRecorder,
    RecorderOptions,
)
from rllib_minestudio.errors import InvalidOptionsError, RecordingError
from rllib_minestudio.foundation.agent_names import AGENTS, HUNTER, TOOLMAKERS
from rllib_minestudio.foundation.files import read_json, write_whole
from rllib_minestudio.foundation.options import broken_rule, not_a_choice
from rllib_minestudio.foundation.processes import die_with
from rllib_minestudio.foundation.values import plain
from rllib_minestudio.recordings.layout import recording_name
from rllib_minestudio.recordings.video import LOSSLESS

ORDER_FILE = "demonstrations.json"
"""Says, in the folder of the recordings, what they are recordings of."""

EPISODES_FOLDER = "episodes"

_MEANS = ("make_env", "load_novice")
"""What of an order says how, not what."""


class Novice(Protocol):
    """A policy that plays until the agent takes over; see `evaluation.Policy`."""

    def act(self, observation: Any) -> Any:
        """Return the action for an observation."""


@dataclass(frozen=True)
class RecordingOrder:
    """What to record.

    Attributes:
        task: What the task is called.
        make_env: Makes the environment out of `env_config`.
        env_config: Its options.
        agent: Name of the agent, one of `AGENTS`, or the `module:function` that makes one.
        prey: What a hunter hunts in episodes whose task has no `prey` of its own, names among
            `hunter.BODIES`.
        make: What a toolmaker makes in episodes whose task has no `make` of its own; None stands
            for an iron pickaxe.
        seed: Of the first episode; the next ones count on from it.
        crf: Quality of the video; 0 keeps every bit.
        novice: A policy that plays the beginning of every episode, which the agent then takes over;
            None has the agent play all of it.
        novice_steps: Up to how many steps the novice plays; how many is drawn for each episode.
        novice_weights: A digest of the novice's weights: recording goes on with the same ones only.
        load_novice: Loads the novice for the environment that it is to play in; what it returns
            gives, for the seed of an episode, the policy that is to play it.
    """

    task: str
    make_env: Callable[[Any], gym.Env]
    env_config: Mapping[str, Any] = field(default_factory=dict)
    agent: str = HUNTER
    prey: tuple[str, ...] = tuple(BODIES)
    make: str | None = None
    seed: int = 0
    crf: int = LOSSLESS
    novice: str | None = None
    novice_steps: int | None = None
    novice_weights: str | None = None
    load_novice: Callable[[gym.Env], Callable[[int], Novice]] | None = None

    def facts(self) -> dict[str, Any]:
        """What has to be the same when recording goes on."""
        facts = {key: value for key, value in asdict(self).items() if key not in _MEANS}
        if is_agent_path(self.agent):
            facts["program"] = dict(AgentMaker.named(self.agent).identity)
        environment: dict[str, Any] = plain(facts)
        return environment


class Recorded(NamedTuple):
    """An episode that was recorded."""

    number: int
    undiscounted_return: float
    length: int


def missing(order: RecordingOrder, folder: Path, episodes: int) -> list[int]:
    """Return which of the first `episodes` episodes are not in `folder` yet.

    Raises:
        InvalidOptionsError: The folder holds demonstrations of something else.
    """
    file = folder / ORDER_FILE
    if file.is_file():
        try:
            before = dict(read_json(file))
        except (OSError, TypeError, ValueError) as error:
            raise RecordingError(f"{str(file)!r} is damaged: {error}.") from error
        wanted = order.facts()
        changed = sorted(key for key in {*before, *wanted} if before.get(key) != wanted.get(key))
        if changed:
            raise InvalidOptionsError(
                f"{str(folder)!r} holds demonstrations that differ in {', '.join(changed)}: "
                "give another --out, or the options they were recorded with."
            )
    done = folder / EPISODES_FOLDER
    return [index for index in range(episodes) if not (done / recording_name(index)).is_dir()]


def record(
    order: RecordingOrder, folder: Path, episodes: int, workers: int = 1
) -> Iterator[Recorded]:
    """Record what is missing of the first `episodes` episodes, and yield each when it is on disk.

    Args:
        order: What to record.
        folder: Where to; made if need be.
        episodes: How many there are to be in the end.
        workers: Processes that play.

    Raises:
        InvalidOptionsError: The order is not in order, or the folder holds something else.
        RecordingError: An episode cannot be written, or a process died. What was recorded stays.
    """
    _check(order)
    indices = missing(order, folder, episodes)
    try:
        write_whole(folder / ORDER_FILE, json.dumps(order.facts(), indent=2) + "\n")
    except OSError as error:
        raise RecordingError(f"{str(folder)!r} cannot be written: {error.strerror}.") from error
    if not indices:
        return
    # Not forked: the parent may have threads, Ray's or torch's.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(workers, len(indices)),
        context,
        initializer=_open,
        initargs=(order, folder, os.getpid()),
    ) as pool:
        try:
            for future in as_completed([pool.submit(_play, index) for index in indices]):
                yield future.result()
        except BrokenProcessPool as error:
            raise RecordingError(
                "A recording process died (out of memory?). The episodes that were finished are "
                "kept; the same command records the rest."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _check(order: RecordingOrder) -> None:
    problems = []
    if is_agent_path(order.agent):
        AgentMaker.named(order.agent)  # or it says why not
        if order.novice is not None:
            rule = f"is for scripted agents, which can take over; {order.agent!r} cannot"
            problems.append(broken_rule("novice", order.novice, rule))
    elif order.agent not in AGENTS:
        problems.append(
            not_a_choice("agent", order.agent, AGENTS)
            + " The episodes of a policy are recorded by `rllib evaluate CHECKPOINT --record DIR`."
        )
    problems += [not_a_choice("prey", name, BODIES) for name in order.prey if name not in BODIES]
    crafts = knowledge().crafts
    if order.make is not None and order.make not in crafts:
        problems.append(not_a_choice("make", order.make, crafts))
    if order.make is not None and order.agent not in TOOLMAKERS:
        rule = f"is for the agents {', '.join(TOOLMAKERS)} only, not {order.agent!r}"
        problems.append(broken_rule("make", order.make, rule))
    if (order.novice is None) != (order.novice_steps is None):
        given = "novice" if order.novice_steps is None else "novice_steps"
        rule = "needs the other of novice and novice_steps as well"
        problems.append(broken_rule(given, getattr(order, given), rule))
    if problems:
        raise InvalidOptionsError(problems)


# ---------------------------------------------------------------- in the processes that play

_given: tuple[RecordingOrder, Path]


def _open(order: RecordingOrder, folder: Path, recorder: int) -> None:
    """Remember what is to be played; an error in here would only break the pool."""
    die_with(recorder)  # or it would play on, into a folder that is another's by now
    global _given
    _given = order, folder


def _play(index: int) -> Recorded:
    order, _ = _given
    return play_episode(_environment(), order, index, _novice())


@cache
def _environment() -> EpisodeRecorder:
    """Build the environment, once per process."""
    order, folder = _given
    options = RecorderOptions(str(folder / EPISODES_FOLDER), crf=order.crf)
    return EpisodeRecorder(order.make_env(order.env_config), options)


@cache
def _own_agent(path: str) -> AgentPlays:
    """Make somebody's agent, once per process."""
    return WatchedAgent(AgentMaker(path, {}, path=path, folders=(str(Path.cwd()),)))


def _agent_of(order: RecordingOrder, seed: int) -> Successor | AgentPlays:
    """Return who plays an episode."""
    if is_agent_path(order.agent):
        return _own_agent(order.agent)
    return make_agent(order.agent, order.prey, seed, order.make or DEFAULT_GOAL)


@cache
def _novice() -> Callable[[int], Novice] | None:
    """Load the novice, once per process."""
    order, _ = _given
    return None if order.load_novice is None else order.load_novice(_environment())


def play_episode(
    env: EpisodeRecorder,
    order: RecordingOrder,
    index: int,
    novice_of: Callable[[int], Novice] | None = None,
) -> Recorded:
    """Play and record one episode.

    A novice plays its beginning, if there is one, and makes its own mistakes, which the agent then
    puts right (Ross et al. 2011, "DAgger"; that the agent plays on, and that only its steps are
    imitated, is Kelly et al. 2019, "HG-DAgger"). What the agent does until a screen that the novice
    has open is closed is not imitated either: it closes every such screen, even one in which a good
    player would go on.

    Args:
        env: Where to.
        order: What to record.
        index: Which episode of the order.
        novice_of: Gives the novice for the seed of an episode.

    Raises:
        RecordingError: It cannot be written.
    """
    seed = order.seed + index
    takeover = 0
    if novice_of is not None and order.novice_steps is not None:
        takeover = int(np.random.default_rng(seed).integers(order.novice_steps + 1))
    agent = _agent_of(order, seed)
    facts = {
        "name": recording_name(index),
        "index": index,
        "task": order.task,
        "policy": {"agent": order.agent, "prey": list(order.prey), "make": order.make},
        "env": plain(dict(order.env_config)),
    }
    if novice_of is not None:
        facts |= {"novice": order.novice, TAKEOVER: takeover}
    obs, info = env.reset(seed=seed, options={RECORDING: facts})
    if isinstance(agent, AgentPlays):
        agent.begin(env, seed)
    novice = novice_of(seed) if novice_of is not None and takeover else None
    total, length, done, is_taking_over = 0.0, 0, False, novice is not None
    while not done:
        if novice is not None and length == takeover:
            assert not isinstance(agent, AgentPlays)
            agent.take_over()
            novice = None
        if is_taking_over and novice is None:
            is_taking_over = bool(info["isGuiOpen"])
            env.note(**{IMITATED_FROM: length + is_taking_over})
        if novice is not None:
            action = novice.act(obs)
        else:
            action = agent.act(obs if isinstance(agent, AgentPlays) else env)
        obs, reward, terminated, truncated, info = env.step(action)
        total += float(reward)
        length += 1
        done = terminated or truncated
    if RECORDING_ERROR in info:
        raise RecordingError(str(info[RECORDING_ERROR]))
    return Recorded(index, total, length)
