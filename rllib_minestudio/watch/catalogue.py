"""What there is to view: tasks, agents, checkpoints and recordings, each under a key.

The page names entries by these keys, never by paths: what is not in the catalogue cannot be opened.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

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
from rllib_minestudio.errors import CheckpointFormatError, InvalidOptionsError, WatchError
from rllib_minestudio.experiments.experiment_file import load_experiments, packaged_example
from rllib_minestudio.experiments.play_task import PlayRequest
from rllib_minestudio.experiments.played_policy import (
    is_experiment_file,
    of_environment,
    task_of,
)
from rllib_minestudio.foundation.agent_names import AGENTS
from rllib_minestudio.foundation.values import plain
from rllib_minestudio.recordings import Recording
from rllib_minestudio.recordings.layout import EPISODE_FILE
from rllib_minestudio.watch.agents import CheckpointPlayer, Player, TaskPlayer, World, saved
from rllib_minestudio.watch.episode import EpisodeView
from rllib_minestudio.watch.request import WatchRequest
from rllib_minestudio.watch.views import Hand, LiveView, PlayView, View, require_playable

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
    player: Callable[[], Player] | None = None
    world: Callable[[], World] | None = None

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

    def open(self, keys: Sequence[str], hand: Hand) -> list[View]:
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
        shared: World | None = None
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

    def play_on(self, recording: Recording, step: int, hand: Hand) -> View:
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

    def _view(self, entry: Entry, shared: World | None, hand: Hand) -> tuple[View, World | None]:
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

    def _agent(self, source: str, agent: str) -> Callable[[], Player]:
        request = PlayRequest(
            task=Path(source),
            agent=agent,
            deterministic=self._request.deterministic and agent not in AGENTS,
            overrides=self._request.overrides,
            trust=self._request.trust,
        )
        return lambda: TaskPlayer(self._world_of_task(source), request)

    def _world_of_task(self, source: str) -> World:
        task = load_experiments(Path(source), of_environment(self._request.overrides))[0]
        env, options, _ = task_of(task)
        return World(env, options, task.name)

    def _of_checkpoint(self, folder: Path) -> list[Entry]:
        player = partial(CheckpointPlayer, folder, self._request, follows=False)
        name, place = folder.name, str(folder)
        return [
            Entry("live", name, "", place, place, player),
            self._play(f"Play the task of {name}", place, player),
        ]

    def _play(self, title: str, place: str, player: Callable[[], Player]) -> Entry:
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
        for file in sorted(root.rglob(EPISODE_FILE))[-MOST_ENTRIES:]:
            place = file.parent
            parts = place.relative_to(root).parts
            is_hidden = any(part.startswith(".") for part in parts)
            if not is_hidden and file.resolve().is_relative_to(root):
                name = "/".join(parts) or place.name
                yield Entry("episode", name, "", str(folder), str(place))
