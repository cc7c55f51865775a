"""What a session shows: a task that a person plays, and an agent that plays.

A recorded episode is a view as well, `catalogue.EpisodeView`.

All methods of a view are called by its session's thread.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.actions import KEYS, ActionMapper, EnvAction
from rllib_minestudio.env.callbacks.tasks import TASK_TEXT
from rllib_minestudio.env.minestudio_env import SNAPSHOT
from rllib_minestudio.env.recorder import RECORDING, EpisodeRecorder, RecorderOptions
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.inference import ActionChooser, Policy
from rllib_minestudio.foundation.names import (
    ENGINE_ERROR,
    HOTBAR_KEYS,
    INVENTORY_TOKEN,
    SUCCESS,
    TASK,
)
from rllib_minestudio.foundation.observations import IMAGE
from rllib_minestudio.foundation.values import plain
from rllib_minestudio.recordings.video import LOSSLESS, Frame
from rllib_minestudio.watch.agents import WatchedPlayer
from rllib_minestudio.watch.protocol import HandDocument

PROGRESS = "progress"
"""Info key of the progress, from 0 to 1, that judges of tasks report."""

MOST_MOMENTS = 200
"""Moments of reward that are told, the last ones."""

STEPS_BETWEEN_SNAPSHOTS = 200
"""In recordings of what a person plays: ten seconds."""

LIKELIEST = 8
"""Actions that are listed with their probabilities."""


class View(ABC):
    """Something that is viewed, step by step.

    Attributes:
        kind: `play`, `live` or `episode`.
        title: What it is, in words.
        seed: Seed of the present episode's world; None if it is not known.
        step: Steps of the present episode so far.
        ended: How the episode ended, in words; "" while it goes on.
    """

    kind: ClassVar[str]
    title: str
    seed: int | None = None
    step: int = 0
    ended: str = ""

    @abstractmethod
    def begin(self, seed: int) -> None:
        """Begin an episode."""

    @abstractmethod
    def advance(self) -> None:
        """Go on by one step."""

    @abstractmethod
    def shown(self) -> tuple[dict[str, Any], dict[str, Frame]]:
        """Return the facts about this moment, and its pictures by name."""

    def news(self) -> dict[str, Any]:
        """Return what has changed besides the episode since the last call, by kind."""
        return {}

    def close(self) -> None:  # noqa: B027 - a recording needs no end
        """End what the view consists of."""


class HumanInput:
    """What the person's hands do, from one tick to the next.

    A key that went down counts in at least one tick, however short it was, and turns add up. One
    thread tells it, and another one plays.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.begin()

    def begin(self) -> None:
        """Begin an episode, in which the first slot of the hotbar is selected."""
        with self._lock:
            self._slot = 0
            self.release()

    def release(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._held: set[str] = set()
            self._tapped: set[str] = set()
            self._turn = np.zeros(2)
            self._scroll = 0

    def take(self, told: HandDocument) -> None:
        """Note a change."""
        with self._lock:
            self._held = set(told.keys)
            self._tapped |= set(told.tapped)
            self._turn = self._turn + told.turn
            self._scroll += told.scroll

    def action(self) -> EnvAction:
        """Return a tick's keys and camera, and begin the next tick."""
        with self._lock:
            return self._action()

    def _action(self) -> EnvAction:
        pressed = self._held | self._tapped
        slots = [HOTBAR_KEYS.index(key) for key in HOTBAR_KEYS if key in pressed]
        if self._scroll and not slots:
            # One notch per tick: the game counts a key of the hotbar when it goes down.
            slots = [(self._slot + (1 if self._scroll > 0 else -1)) % len(HOTBAR_KEYS)]
            pressed = pressed | {HOTBAR_KEYS[slots[0]]}
            self._scroll -= 1 if self._scroll > 0 else -1
        if slots:
            self._slot = slots[-1]
        action: EnvAction = {key: int(key in pressed) for key in KEYS}
        action["camera"], self._turn = self._turn, np.zeros(2)
        self._tapped = set()
        return action


@dataclass
class Course:
    """How an episode goes.

    Attributes:
        reward: The last step's.
        total: The undiscounted return so far.
        moments: (step, reward) where there was one.
        info: The last info.
    """

    info: Mapping[str, Any]
    reward: float = 0.0
    total: float = 0.0
    moments: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=MOST_MOMENTS))

    def add(self, step: int, reward: float, info: Mapping[str, Any]) -> None:
        """Add a step."""
        self.reward, self.info = float(reward), info
        self.total += self.reward
        if self.reward:
            self.moments.append((step, self.reward))

    def facts(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        info = self.info
        return {
            "task": info.get(TASK),
            "text": info.get(TASK_TEXT),
            "reward": number(self.reward),
            "return": number(self.total),
            "moments": list(self.moments),
            "success": info.get(SUCCESS),
            "progress": number(info.get(PROGRESS)),
            "inventory": inventory_of(info),
        }


def number(value: Any) -> float | None:
    """Return a number that JSON can hold; None for anything else."""
    if isinstance(value, bool | str) or value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):  # a list, or an integer beyond all floats
        return None
    return found if math.isfinite(found) else None


def inventory_of(info: Mapping[str, Any]) -> list[tuple[int, str, int]]:
    """Return (slot, item, quantity) of what the player carries.

    Another environment's inventory may be anything; what has no slot with an item is left out.
    """
    slots, carried = info.get("inventory"), []
    for slot, stack in slots.items() if isinstance(slots, Mapping) else ():
        item = stack.get("type") if isinstance(stack, Mapping) else None
        if item not in (None, "none", "air") and str(slot).isdecimal():
            carried.append((int(slot), str(item), int(number(stack.get("quantity", 1)) or 0)))
    return carried


def keys_of(action: Any, mapper: ActionMapper | None) -> dict[str, Any]:
    """Return the keys that an action presses and its turn of the camera; or the action as it is."""
    if mapper is None or not isinstance(action, Mapping):
        return {"action": plain(action)}
    pressed = mapper.keys_of(action)
    return {
        "keys": [key for key in KEYS if pressed.get(key)],
        "camera": [round(float(angle), 3) for angle in pressed["camera"]],
    }


def mapper_of(env: gym.Env) -> ActionMapper | None:
    """Return the meaning of tokens in an environment; None if it is not ours."""
    inner = env.unwrapped
    return ActionMapper(inner.options.camera_config) if isinstance(inner, MineStudioEnv) else None


class EnvView(View):
    """An environment that somebody plays in.

    Args:
        title: What it is, in words.
        env: The environment.
    """

    def __init__(self, title: str, env: gym.Env) -> None:
        self.title = title
        self._env = env
        self._mapper = mapper_of(env)
        self._course = Course({})
        self._obs: Any = None

    def _reset(self, seed: int, options: dict[str, Any] | None = None) -> None:
        self._obs, info = self._env.reset(seed=seed, options=options)
        self.seed, self.step, self.ended = seed, 0, ""
        self._course = Course(info)

    def _step(self, action: Any) -> None:
        self._obs, reward, terminated, truncated, info = self._env.step(action)
        self.step += 1
        self._course.add(self.step, float(reward), info)
        if terminated or truncated:
            failed = info.get(ENGINE_ERROR)
            self.ended = str(failed or ("terminated" if terminated else "truncated"))

    def shown(self) -> tuple[dict[str, Any], dict[str, Frame]]:
        """Return the facts about this moment, the person's picture and the agent's."""
        facts = {
            "kind": self.kind,
            "title": self.title,
            "seed": self.seed,
            "step": self.step,
            "ended": self.ended,
            **self._course.facts(),
        }
        pictures = {}
        if self._env.render_mode == "rgb_array":
            pictures["view"] = np.asarray(self._rendered(), np.uint8)
        seen = self._obs.get(IMAGE) if isinstance(self._obs, Mapping) else None
        if seen is not None:
            pictures["seen"] = np.asarray(seen, np.uint8)
        return facts, pictures

    def _rendered(self) -> Any:
        return self._env.render()

    def close(self) -> None:
        """Close the environment; a recording that was not kept is discarded."""
        self._env.close()


class PlayView(EnvView):
    """A task that a person plays, recorded until they decide whether to keep it.

    Args:
        title: What it is, in words.
        env: A `MineStudioEnv` whose actions are keys and degrees.
        folder: Where recordings go.
        facts: What recordings say about the task.
        hand: What the person does.
        snapshot: The saved game in which every episode begins; None for new worlds.
    """

    kind = "play"

    def __init__(
        self,
        title: str,
        env: gym.Env,
        folder: Path,
        facts: Mapping[str, Any],
        hand: HumanInput,
        snapshot: bytes | None = None,
    ) -> None:
        has_snapshots = isinstance(env.unwrapped, MineStudioEnv) and env.unwrapped.has_snapshots
        options = RecorderOptions(
            str(folder),
            crf=LOSSLESS,
            beside=True,
            snapshot_interval=STEPS_BETWEEN_SNAPSHOTS if has_snapshots else 0,
        )
        self._recorder = EpisodeRecorder(env, options, on_request=True)
        super().__init__(title, self._recorder)
        self._facts, self._hand, self._snapshot = dict(facts), hand, snapshot
        self._action: EnvAction = {}
        self.kept = ""

    def begin(self, seed: int) -> None:
        """Begin an episode and its recording; one that was not kept is discarded."""
        # Other sessions may record the same task at the same time.
        moment = datetime.now().strftime("%Y-%m-%d_%H-%M-%S_%f")
        self._hand.begin()
        self._action, self.kept = {}, ""
        self._reset(seed, {RECORDING: {**self._facts, "name": moment}, SNAPSHOT: self._snapshot})

    def advance(self) -> None:
        """Play a tick with what the person does; nothing more happens in an episode that ended."""
        if not self.ended:
            self._action = self._hand.action()
            self._step(self._action)

    def keep(self, agent: str) -> None:
        """Keep the recording so far, which ends the episode.

        Args:
            agent: The name of who played.

        Raises:
            RecordingError: There is nothing to keep, or it cannot be written.
        """
        path = self._recorder.keep(policy={"agent": agent, "person": True})
        self.kept, self.ended = str(path), self.ended or "kept"

    def _rendered(self) -> Any:
        # Drawn for the recording already, unless that has ended.
        return super()._rendered() if not self._recorder.length else self._recorder.beside

    def shown(self) -> tuple[dict[str, Any], dict[str, Frame]]:
        """Return the facts about this moment, and the person's picture."""
        facts, pictures = super().shown()
        told = keys_of(self._action, self._mapper) if self._action else {}
        facts |= {**told, "recorded": self._recorder.length, "kept": self.kept}
        facts["is_saved_game"] = self._snapshot is not None
        if self._recorder.failures:
            facts["failure"] = self._recorder.failures[-1]
        return facts, {name: frame for name, frame in pictures.items() if name == "view"}


class LiveView(EnvView):
    """An agent that plays; what it is about to do is shown with what it does it for.

    Args:
        title: What it is, in words.
        env: The environment.
        player: Who plays; asked for every episode, because it may have learned meanwhile.
    """

    kind = "live"

    def __init__(self, title: str, env: gym.Env, player: WatchedPlayer) -> None:
        super().__init__(title, env)
        self._source = player
        self._player: ActionChooser | None = None
        self._name = ""
        self._action: Any = None
        self._numbers: dict[str, Any] = {}

    def begin(self, seed: int) -> None:
        """Begin an episode, with the newest agent there is."""
        self._name, self._player = self._source.begin(self._env, seed)
        self._reset(seed)
        self._player.reset()
        self._decide()

    def advance(self) -> None:
        """Play a step."""
        if not self.ended:
            self._step(self._action)
            self._decide()

    def news(self) -> dict[str, Any]:
        """Return the course of the agent's training, if it has changed."""
        return self._source.news()

    def _decide(self) -> None:
        assert self._player is not None
        self._numbers = {}
        if self.ended:
            self._action = None
            return
        self._action = self._player.act(self._obs)
        if isinstance(self._player, Policy):
            self._numbers = numbers_of(self._player, self._mapper)

    def shown(self) -> tuple[dict[str, Any], dict[str, Frame]]:
        """Return the facts about this moment, the person's picture and the agent's."""
        facts, pictures = super().shown()
        told = {} if self._action is None else keys_of(self._action, self._mapper)
        return {**facts, "agent": self._name, **told, **self._numbers}, pictures


# --------------------------------------------------------------------- what a policy has in mind


def numbers_of(policy: Policy, mapper: ActionMapper | None) -> dict[str, Any]:
    """Return value, entropy, divergence and the likeliest actions at a policy's last observation.

    Args:
        policy: A policy that acts in one environment.
        mapper: The meaning of its tokens; None if its actions are not ours.
    """
    distribution = policy.distribution
    assert distribution is not None and policy.value is not None
    heads = {
        name: head.logits.reshape(-1).float().exp().cpu().numpy()
        for name, head in distribution.heads.items()
    }
    return {
        "value": number(policy.value),
        "entropy": number(distribution.entropy().reshape(-1)[0]),
        "kl": None if policy.kl is None else number(policy.kl.reshape(-1)[0]),
        "likeliest": likeliest(heads, mapper),
    }


def likeliest(
    heads: Mapping[str, np.ndarray], mapper: ActionMapper | None, count: int = LIKELIEST
) -> list[dict[str, Any]]:
    """Return the most probable joint actions, with their probabilities.

    Of VPT's tokens, the camera's counts only if the buttons say so: what does the same is one
    action, with the sum of the probabilities.

    Args:
        heads: Per head the probability of each token; the heads are independent.
        mapper: The meaning of VPT's tokens; None for other actions.
        count: How many to return.
    """
    if mapper is not None and set(heads) == {"buttons", "camera"}:
        null, camera = mapper.null_camera_token, heads["camera"].copy()
        tokens = np.arange(len(heads["buttons"]))
        uses = mapper.uses_camera(tokens)
        still = np.where(uses, 0.0, heads["buttons"])
        turning = np.where(uses, heads["buttons"], 0.0)
        # To choose the camera and not to turn it is to do what the token before does, which
        # differs in that choice alone; the inventory's token is alone.
        same = np.where(uses & (tokens != INVENTORY_TOKEN), tokens - 1, tokens)
        np.add.at(still, same, turning * camera[null])
        camera[null] = 0.0
        found = [*_top({"buttons": still}, count)]
        found += _top({"buttons": turning, "camera": camera}, count)
        found = sorted(found, key=lambda entry: -entry[0])[:count]
        return [{"p": round(p, 4), **keys_of({"camera": null, **t}, mapper)} for p, t in found]
    return [{"p": round(p, 4), "action": tokens} for p, tokens in _top(heads, count)]


def _top(heads: Mapping[str, np.ndarray], count: int) -> list[tuple[float, dict[str, int]]]:
    """Return the most probable combinations of tokens, with their probabilities."""
    joint: list[tuple[float, dict[str, int]]] = [(1.0, {})]
    for name, probabilities in heads.items():
        best = np.argsort(-probabilities, kind="stable")[:count].tolist()
        grown = [
            (p * float(probabilities[token]), {**tokens, name: token})
            for p, tokens in joint
            for token in best
        ]
        joint = sorted(grown, key=lambda entry: -entry[0])[:count]
    return joint


def require_playable(env: gym.Env) -> None:
    """Refuse an environment that a person cannot play with Minecraft's keys.

    Raises:
        InvalidOptionsError: It is not a `MineStudioEnv` with frames to look at.
    """
    if not isinstance(env.unwrapped, MineStudioEnv) or env.render_mode is None:
        raise InvalidOptionsError(
            "Only tasks of MineStudioEnv with render_mode rgb_array can be played by hand: watch "
            "an agent play this one."
        )
