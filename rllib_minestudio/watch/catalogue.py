"""What there is to view: tasks, agents, checkpoints and recordings, each under a key.

The page names entries by these keys, never by paths: what is not in the catalogue cannot be opened.
"""

from __future__ import annotations

import hashlib
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rllib_minestudio.checkpoints.lookup import (
    BEST,
    LATEST,
    POLICY_AVERAGE,
    checkpoint_folders,
    is_shipped,
    locate,
    read_checkpoint,
    shipped_names,
    trial_of,
)
from rllib_minestudio.checkpoints.record import RECORD_FILE
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import CheckpointFormatError, InvalidOptionsError, WatchError
from rllib_minestudio.experiments.evaluate_checkpoint import PlayRequest
from rllib_minestudio.experiments.experiment_file import load_experiments, packaged_example
from rllib_minestudio.experiments.played_policy import (
    is_experiment_file,
    of_environment,
    task_of,
)
from rllib_minestudio.foundation.names import AGENTS, SUCCESS, TASK
from rllib_minestudio.foundation.recording_options import OBSERVATION
from rllib_minestudio.foundation.values import plain
from rllib_minestudio.recordings import Recording
from rllib_minestudio.recordings.layout import EPISODE_FILE
from rllib_minestudio.recordings.reader import recorded_folders
from rllib_minestudio.recordings.video import Frame
from rllib_minestudio.watch.agents import (
    CheckpointPlayer,
    TaskPlayer,
    TaskWorld,
    WatchedPlayer,
    saved,
)
from rllib_minestudio.watch.request import WatchRequest
from rllib_minestudio.watch.views import (
    MOST_MOMENTS,
    PROGRESS,
    TASK_TEXT,
    HumanInput,
    LiveView,
    PlayView,
    View,
    inventory_of,
    keys_of,
    number,
    require_playable,
)

# --------------- a recorded episode as a view: any of its steps, with what was done and known there

FORWARD = 100
"""Frames up to which decoding on is faster than starting at a key frame."""

MOST_INFOS = 20_000
"""Steps of an episode up to which its infos are kept in memory."""


class EpisodeView(View):
    """A recorded episode.

    Args:
        title: What it is, in words.
        recording: The episode.
    """

    kind = "episode"

    def __init__(self, title: str, recording: Recording) -> None:
        self.title = title
        self.recording = recording
        meta = recording.meta
        seed = meta.get("seed")
        self.seed = seed if isinstance(seed, int) and 0 <= seed < 2**31 else None
        columns = recording.steps
        self._returns = np.concatenate([[0.0], np.cumsum(columns["reward"], dtype=np.float64)])
        self._frames = _Frames(recording, beside=False)
        self._beside = _Frames(recording, beside=True) if recording.has_beside else None
        self._mapper = ActionMapper()
        self._told: dict[str, Any] = {}

    def begin(self, seed: int) -> None:
        """Go to the first frame, whatever the seed."""
        self.seek(0)

    def advance(self) -> None:
        """Go to the next frame."""
        self.seek(self.step + 1)

    def seek(self, step: int) -> None:
        """Go to a frame; the last one if there are fewer."""
        self.step = min(step, len(self.recording))
        self.ended = self._end if self.step == len(self.recording) else ""

    @cached_property
    def _end(self) -> str:
        columns = self.recording.steps
        for name in ("terminated", "truncated"):
            if len(self.recording) and columns[name][-1]:
                return name
        return "end of the recording"

    @cached_property
    def _infos(self) -> list[dict[str, Any]]:
        if len(self.recording) > MOST_INFOS:
            return []
        return list(self.recording.infos())

    @cached_property
    def _moments(self) -> list[tuple[int, float]]:
        reward = self.recording.steps["reward"]
        return [(int(t) + 1, float(reward[t])) for t in np.flatnonzero(reward)[:MOST_MOMENTS]]

    @cached_property
    def _successes(self) -> list[int]:
        """The steps at which the task became solved."""
        told = [info.get(SUCCESS) is True for info in self._infos]
        return [t + 1 for t, (before, now) in enumerate(pairwise(told)) if now and not before]

    def shown(self) -> tuple[dict[str, Any], dict[str, Frame]]:
        """Return the facts about this step, and its frame."""
        recording, t = self.recording, self.step
        columns, meta = recording.steps, recording.meta
        info = self._infos[t] if self._infos else {}
        facts = {
            "kind": self.kind,
            "title": self.title,
            "seed": self.seed,
            "step": t,
            "length": len(recording),
            "ended": self.ended,
            "agent": _player(meta),
            "task": info.get(TASK, meta.get("task")),
            "text": info.get(TASK_TEXT),
            "reward": number(columns["reward"][t - 1]) if t else 0.0,
            "return": number(self._returns[t]),
            "success": info.get(SUCCESS, meta.get("success")),
            "progress": number(info.get(PROGRESS)),
            "moments": self._moments,
            "successes": self._successes,
            "saved": self._last_saved(t),
            "inventory": inventory_of(info),
            "info": info,
        }
        if t < len(recording):
            facts |= keys_of(self._action(t), self._mapper)
            facts["value"] = number(columns["value"][t])
            facts["kl"] = number(columns["kl"][t]) if "kl" in columns else None
        names = ["view", "seen"]
        if (meta.get("video") or {}).get("source") == OBSERVATION:
            names.reverse()
        pictures = [self._frames.at(t), *([self._beside.at(t)] if self._beside else [])]
        return facts, dict(zip(names, pictures, strict=False))

    def _last_saved(self, t: int) -> int | None:
        """The last step up to t after which the whole game is saved; None if there is none."""
        before = bisect_right(self.recording.snapshot_steps, t)
        return self.recording.snapshot_steps[before - 1] if before else None

    def _action(self, t: int) -> dict[str, Any]:
        columns, keys = self.recording.steps, self.recording.meta.get("keys")
        if keys is None:
            return {name: int(columns[name][t]) for name in ("buttons", "camera")}
        pressed = dict(zip(keys, columns["keys"][t].tolist(), strict=True))
        return {**pressed, "camera": columns["degrees"][t]}


def _player(meta: dict[str, Any]) -> str:
    policy = meta.get("policy")
    named = policy if isinstance(policy, dict) else {}
    return str(named.get("agent") or named.get("checkpoint") or named.get("name") or "")


class _Frames:
    """The frames of a recording by their number, decoded when they are asked for."""

    def __init__(self, recording: Recording, *, beside: bool) -> None:
        self._recording, self._is_beside = recording, beside
        self._decoded: Iterator[Frame] = iter(())
        self._last: tuple[int, Frame | None] = 0, None

    def at(self, t: int) -> Frame:
        """Return frame t, (height, width, 3) uint8 RGB.

        Raises:
            RecordingError: There is no such frame, or it cannot be decoded.
        """
        number, frame = self._last
        if frame is None or not 0 <= t - number <= FORWARD:
            self._decoded = self._recording.frames(start=t, beside=self._is_beside)
            number = t - 1
        for _ in range(t - number):
            frame = next(self._decoded)
        assert frame is not None
        self._last = t, frame
        return frame


# --------------- what there is to view: tasks, agents, checkpoints and recordings, each under a key

LEVELS = 3
"""Levels from a folder of results down to a trial: experiment, run, trial."""

MOST_ENTRIES = 1000
"""Entries of one folder that are listed."""


@dataclass(frozen=True)
class Entry:
    """Something to view.

    Attributes:
        kind: As of its view.
        title: What it is, in words.
        detail: More about it.
        group: Where it comes from.
        place: What identifies it, such as a path.
        player: Opens who plays, and the world; None for recordings.
        world: Opens the world that a person plays in; only for `play`.
    """

    kind: str
    title: str
    detail: str
    group: str
    place: str
    player: Callable[[], WatchedPlayer] | None = None
    world: Callable[[], TaskWorld] | None = None

    @property
    def key(self) -> str:
        """Its name for the page."""
        return hashlib.sha256(f"{self.kind} {self.place}".encode()).hexdigest()[:16]


class Catalogue:
    """The entries of the sources that the command line names.

    Args:
        request: The command line.

    Raises:
        MineStudioError: A source does not exist, or is nothing to view.
    """

    def __init__(self, request: WatchRequest) -> None:
        self._request = request
        self._lock = threading.Lock()
        self._known: dict[str, Entry] = {}
        sources = [request.source, *([request.compare] if request.compare else [])]
        self._finders = [self._finder(source) for source in sources]
        if not self.entries():
            raise WatchError(
                f"There is nothing to view in {request.source!r}: name a task, such as "
                "tuned_examples/cow.yaml, a checkpoint, or a folder with results or recordings."
            )

    def entries(self) -> list[dict[str, Any]]:
        """Return what there is to view now."""
        found = [entry for find in self._finders for entry in find()]
        found += list(self._recordings(Path(self._request.out)))
        with self._lock:
            self._known |= {entry.key: entry for entry in found}
        listed = {entry.key: entry for entry in found}
        return [
            {
                "key": key,
                "kind": entry.kind,
                "title": entry.title,
                "detail": entry.detail,
                "group": entry.group,
            }
            for key, entry in listed.items()
        ]

    def open(self, keys: Sequence[str], hand: HumanInput) -> list[View]:
        """Open entries, to be viewed side by side in the world of the first that has one.

        Raises:
            MineStudioError: There is no such entry, or it cannot be opened.
        """
        with self._lock:
            entries = [self._known.get(key) for key in keys]
        found = [entry for entry in entries if entry is not None]
        if len(found) < len(keys):
            raise WatchError("There is no such entry any more: choose another one.")
        if sum(entry.kind == "play" for entry in found) > 1:
            raise WatchError("One person plays one game at a time: compare it with an agent.")
        views: list[View] = []
        shared: TaskWorld | None = None
        try:
            for entry in found:
                view, world = self._view(entry, shared, hand)
                views.append(view)
                shared = shared or world
        except BaseException:
            for view in views:
                view.close()
            raise
        return views

    def play_on(self, recording: Recording, step: int, hand: HumanInput) -> View:
        """Open the game that is saved after a step of a recording, for a person to play on.

        It goes on without the callbacks of its task: a saved game does not hold what they
        remember, and a recording from elsewhere must not name programs.

        Raises:
            MineStudioError: No game is saved after that step, or it cannot be restored.
        """
        snapshot = recording.snapshot(step)
        env = MineStudioEnv(action_type="env", render_mode="rgb_array")
        title = f"{recording.path.name}, played on from step {step}"
        facts = {"began_in": {"recording": str(recording.path), "step": step}}
        return PlayView(title, env, Path(self._request.out), facts, hand, snapshot)

    def _view(
        self, entry: Entry, shared: TaskWorld | None, hand: HumanInput
    ) -> tuple[View, TaskWorld | None]:
        if entry.kind == "episode":
            return EpisodeView(entry.title, Recording(entry.place)), None
        if entry.world is not None:
            own = entry.world()
            world = own if shared is None else shared.suited_to(own)
            env = world.build(action_type="env", render_mode="rgb_array")
            require_playable(env)
            facts = {"task": world.name, "env": plain(dict(world.options))}
            return PlayView(entry.title, env, Path(self._request.out), facts, hand), world
        assert entry.player is not None
        player = entry.player()
        world = player.world if shared is None else shared.suited_to(player.world)
        return LiveView(entry.title, world.build(), player), world

    # --------------------------------------------------------------------------- kinds of sources

    def _finder(self, source: str) -> Callable[[], list[Entry]]:
        """Return what lists the entries of a source."""
        path = Path(source)
        is_name = not path.exists() and packaged_example(path) is not None
        if is_experiment_file(source) or is_name:
            self._world_of_task(source)  # tells what is wrong with it
            return partial(self._of_task, source)
        if path.is_dir() and not (path / RECORD_FILE).is_file():
            return lambda: [*self._checkpoints(path), *self._recordings(path)]
        if is_shipped(source):
            raise InvalidOptionsError(
                f"{source} says nothing of a world to play in: rllib watch TASK --agent {source}, "
                "such as rllib watch tuned_examples/cow.yaml."
            )
        if path.name in (BEST, LATEST, POLICY_AVERAGE) or path.exists():
            return partial(self._of_checkpoint, locate(source))
        raise WatchError(
            f"There is no {source!r}: name a task, such as tuned_examples/cow.yaml, a checkpoint, "
            "or a folder with results or recordings."
        )

    def _of_task(self, source: str) -> list[Entry]:
        world = partial(self._world_of_task, source)
        play = Entry("play", f"Play {Path(source).stem} yourself", "", source, source, world=world)
        agents = {**AGENTS, **{f"package:{name}": "" for name in shipped_names()}}
        if self._request.agent is not None:
            agents = {self._request.agent: "", **agents}
        live = [
            Entry("live", agent, detail, source, f"{source} {agent}", self._agent(source, agent))
            for agent, detail in agents.items()
        ]
        return [play, *live]

    def _agent(self, source: str, agent: str) -> Callable[[], WatchedPlayer]:
        request = PlayRequest(
            task=Path(source),
            agent=agent,
            deterministic=self._request.deterministic and agent not in AGENTS,
            overrides=self._request.overrides,
            trust=self._request.trust,
        )
        return lambda: TaskPlayer(self._world_of_task(source), request)

    def _world_of_task(self, source: str) -> TaskWorld:
        task = load_experiments(Path(source), of_environment(self._request.overrides))[0]
        env, options, _ = task_of(task)
        return TaskWorld(env, options, task.name)

    def _of_checkpoint(self, folder: Path) -> list[Entry]:
        player = partial(CheckpointPlayer, folder, self._request, follows=False)
        name, place = folder.name, str(folder)
        return [
            Entry("live", name, "", place, place, player),
            self._play(f"Play the task of {name}", place, player),
        ]

    def _play(self, title: str, place: str, player: Callable[[], WatchedPlayer]) -> Entry:
        return Entry("play", title, "", place, place, world=lambda: player().world)

    def _checkpoints(self, folder: Path) -> Iterator[Entry]:
        by_trial: dict[Path, list[Path]] = {}
        for path in checkpoint_folders(folder, LEVELS):
            by_trial.setdefault(trial_of(path), []).append(path)
        for trial, paths in by_trial.items():
            group = str(trial)
            newest = partial(CheckpointPlayer, trial, self._request, follows=True)
            yield Entry("live", "Newest checkpoint", "follows the run", group, group, newest)
            yield self._play("Play its task yourself", group, newest)
            for path in reversed(paths[-MOST_ENTRIES:]):
                player = partial(CheckpointPlayer, path, self._request, follows=False)
                try:
                    found = read_checkpoint(path)
                except CheckpointFormatError:  # whoever opens it is told which
                    yield Entry("live", path.name, "of another format", group, str(path), player)
                    continue
                if found is not None:
                    title = f"Iteration {found.record.iteration}"
                    yield Entry("live", title, saved(found), group, str(path), player)

    def _recordings(self, folder: Path) -> Iterator[Entry]:
        root = folder.resolve()
        if not root.is_dir():
            return
        for place in recorded_folders(root)[-MOST_ENTRIES:]:
            parts = place.relative_to(root).parts
            if (place / EPISODE_FILE).resolve().is_relative_to(root):
                name = "/".join(parts) or place.name
                yield Entry("episode", name, "", str(folder), str(place))
