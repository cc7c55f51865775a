"""Recording episodes of a task that a scripted agent plays, in several processes.

An episode depends only on its seed, not on which process plays it or when. So interrupted recording
can be resumed, with the same result as without the interruption.
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
from typing import Annotated, Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from pydantic import Field

from rllib_minestudio.demonstrations.windows import IMITATED_FROM, TAKEOVER
from rllib_minestudio.env.agents.hunter import BODIES
from rllib_minestudio.env.agents.scripted import Successor, make_agent
from rllib_minestudio.env.agents.toolmaker import DEFAULT_GOAL, knowledge
from rllib_minestudio.env.agents.user_agents import (
    AgentMaker,
    AgentPlays,
    WatchedAgent,
    is_agent_path,
)
from rllib_minestudio.env.recorder import (
    RECORDING,
    RECORDING_ERROR,
    EpisodeRecorder,
    RecorderOptions,
)
from rllib_minestudio.errors import InvalidOptionsError, RecordingError
from rllib_minestudio.foundation.documents import (
    Count,
    Document,
    ListOf,
    MeasuredMapping,
    Name,
    PlainMapping,
    Seed,
    Text,
    given,
    read_document,
)
from rllib_minestudio.foundation.files import SmallFileError, sole_use, write_whole
from rllib_minestudio.foundation.names import AGENTS, HUNTER, TOOLMAKERS
from rllib_minestudio.foundation.options import broken_rule, not_a_choice
from rllib_minestudio.foundation.processes import die_with
from rllib_minestudio.foundation.recording_options import DATASET, OWN
from rllib_minestudio.foundation.values import plain
from rllib_minestudio.recordings.layout import recording_name
from rllib_minestudio.recordings.minestudio_dataset import the_package
from rllib_minestudio.recordings.video import LOSSLESS
from rllib_minestudio.recordings.writer import LAYOUTS

ORDER_FILE = "demonstrations.json"
"""File in the folder of the recordings that describes what was recorded."""

EPISODES_FOLDER = "episodes"

_MEANS = ("make_env", "load_novice")
"""Fields of an order that are functions, and not part of its description."""


class Novice(Protocol):
    """A policy that plays until the agent takes over; see `evaluation.Policy`."""

    def act(self, observation: Any) -> Any:
        """Return the action for an observation."""


@dataclass(frozen=True)
class RecordingOrder:
    """What to record.

    Attributes:
        task: Name of the task.
        make_env: Creates the environment from `env_config`.
        env_config: Options of the environment.
        agent: Name of the agent, one of `AGENTS`, or the `module:function` that creates one.
        prey: Animals that a hunter hunts in tasks without a `prey` of their own; names in
            `hunter.BODIES`.
        make: Item that a toolmaker makes in tasks without a `make` of their own; None stands for an
            iron pickaxe.
        seed: Seed of the first episode; the following episodes have the following seeds.
        format: Format of the recordings, one of `LAYOUTS`.
        crf: Quality of the video; 0 is lossless.
        snapshot_interval: Steps from one saved game to the next; 0 saves none.
        novice: A policy that plays the beginning of every episode before the agent takes over; None
            lets the agent play whole episodes.
        novice_steps: Maximum number of steps of the novice; the number is drawn for each episode.
        novice_weights: Digest of the novice's weights, which must not change when recording is
            resumed.
        load_novice: Loads the novice for an environment, and returns a function from an episode's
            seed to the policy that plays it.
    """

    task: str
    make_env: Callable[[Any], gym.Env]
    env_config: Mapping[str, Any] = field(default_factory=dict)
    agent: str = HUNTER
    prey: tuple[str, ...] = tuple(BODIES)
    make: str | None = None
    seed: int = 0
    format: str = OWN
    crf: int = LOSSLESS
    snapshot_interval: int = 0
    novice: str | None = None
    novice_steps: int | None = None
    novice_weights: str | None = None
    load_novice: Callable[[gym.Env], Callable[[int], Novice]] | None = None

    def facts(self) -> dict[str, Any]:
        """Return all that must not change when recording is resumed."""
        facts = {key: value for key, value in asdict(self).items() if key not in _MEANS}
        if is_agent_path(self.agent):
            facts["program"] = dict(AgentMaker.named(self.agent).identity)
        environment: dict[str, Any] = plain(facts)
        return environment


class OrderDocument(Document):
    """`demonstrations.json`: what `RecordingOrder.facts` returns."""

    task: Name
    env_config: MeasuredMapping
    agent: Name
    prey: ListOf[Name]
    make: Name | None
    seed: Seed
    format: Name
    crf: Annotated[int, Field(ge=0, le=63)]
    snapshot_interval: Count
    novice: Text | None
    novice_steps: Count | None
    novice_weights: Name | None
    program: PlainMapping | None = None


class Recorded(NamedTuple):
    """Number, return and length of a recorded episode."""

    number: int
    undiscounted_return: float
    length: int


def missing(order: RecordingOrder, folder: Path, episodes: int) -> list[int]:
    """Return the numbers of those of the first `episodes` episodes that are not in `folder` yet.

    Raises:
        InvalidOptionsError: The folder holds demonstrations with other options.
        RecordingError: The folder's `ORDER_FILE` is damaged.
    """
    file = folder / ORDER_FILE
    if file.is_file():
        try:
            before = given(read_document(file, OrderDocument))
        except (OSError, SmallFileError) as error:
            raise RecordingError(f"{str(file)!r} is damaged: {error}.") from error
        wanted = order.facts()
        changed = sorted(key for key in {*before, *wanted} if before.get(key) != wanted.get(key))
        if changed:
            raise InvalidOptionsError(
                f"{str(folder)!r} holds demonstrations that differ in {', '.join(changed)}: "
                "give another --out, or the options they were recorded with."
            )
    done = folder / EPISODES_FOLDER
    place_of = LAYOUTS[order.format].place_of
    return [
        index for index in range(episodes) if not place_of(done / recording_name(index)).exists()
    ]


def record(
    order: RecordingOrder, folder: Path, episodes: int, workers: int = 1
) -> Iterator[Recorded]:
    """Record the missing ones of the first `episodes` episodes, and yield each when it is on disk.

    Args:
        order: What to record.
        folder: The folder to record to, which is created if necessary.
        episodes: Number of episodes to have at the end.
        workers: Number of processes that play.

    Raises:
        InvalidOptionsError: The order is invalid, or the folder holds other demonstrations.
        RecordingError: An episode cannot be written, or a process died. Finished episodes are kept.
        FolderInUseError: Another process records to the folder.
    """
    _check(order)
    indices = missing(order, folder, episodes)
    try:
        write_whole(folder / ORDER_FILE, json.dumps(order.facts(), indent=2) + "\n")
    except OSError as error:
        raise RecordingError(f"{str(folder)!r} cannot be written: {error.strerror}.") from error
    if not indices:
        return
    with sole_use(folder):
        yield from _record(order, folder, indices, workers)


def _record(
    order: RecordingOrder, folder: Path, indices: list[int], workers: int
) -> Iterator[Recorded]:
    # Not forked, because the parent may have threads of Ray or torch.
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
    if order.format == DATASET:
        the_package()  # raises an error if it is missing
    if is_agent_path(order.agent):
        AgentMaker.named(order.agent)  # raises an error if there is no such agent
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
    """Store the arguments for `_play`, without validation: an error here would break the pool."""
    die_with(recorder)  # otherwise it would go on to write to a folder that another may use by now
    global _given
    _given = order, folder


def _play(index: int) -> Recorded:
    order, _ = _given
    return play_episode(_environment(), order, index, _novice())


@cache
def _environment() -> EpisodeRecorder:
    order, folder = _given
    options = RecorderOptions(
        str(folder / EPISODES_FOLDER),
        format=order.format,
        crf=order.crf,
        snapshot_interval=order.snapshot_interval,
    )
    return EpisodeRecorder(order.make_env(order.env_config), options)


@cache
def _own_agent(path: str) -> AgentPlays:
    return WatchedAgent(AgentMaker(path, {}, path=path, folders=(str(Path.cwd()),)))


def _agent_of(order: RecordingOrder, seed: int) -> Successor | AgentPlays:
    if is_agent_path(order.agent):
        return _own_agent(order.agent)
    return make_agent(order.agent, order.prey, seed, order.make or DEFAULT_GOAL)


@cache
def _novice() -> Callable[[int], Novice] | None:
    order, _ = _given
    return None if order.load_novice is None else order.load_novice(_environment())


def play_episode(
    env: EpisodeRecorder,
    order: RecordingOrder,
    index: int,
    novice_of: Callable[[int], Novice] | None = None,
) -> Recorded:
    """Play and record one episode.

    If there is a novice, it plays the beginning and makes its own mistakes, which the agent then
    corrects (Ross et al. 2011, "DAgger"). The agent plays on to the end, and only its steps are
    imitated (Kelly et al. 2019, "HG-DAgger"). If the novice leaves a screen open, the agent's steps
    until it is closed are not imitated either: the agent closes every such screen, even one that a
    good player would go on using.

    Args:
        env: The environment, which records the episode.
        order: What to record.
        index: Number of the episode in the order.
        novice_of: Returns the novice for the seed of an episode.

    Raises:
        RecordingError: The episode cannot be written.
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
