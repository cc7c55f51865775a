"""Records the episodes of an environment, in the environment's own process."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError, RecordingError
from rllib_minestudio.foundation.names import POV, SUCCESS
from rllib_minestudio.foundation.observations import IMAGE, parts_of, write_observation
from rllib_minestudio.foundation.options import Problems, option, option_problems, shown
from rllib_minestudio.foundation.recording_options import (
    AUTO,
    CONTRACTOR,
    DATASET,
    OBSERVATION,
    OWN,
    RecordingForm,
)
from rllib_minestudio.recordings.columns import EXTRAS
from rllib_minestudio.recordings.video import Frame, VideoOptions
from rllib_minestudio.recordings.writer import LAYOUTS, EpisodeWriter

RECORDING = "recording"
"""Key in the last info for the path of the episode's recording, and in the `options` of `reset` for
facts to store in it. Two of these are for the recorder: `name` names the recording, and `options`
(a mapping, or None to record nothing) replaces the recorder's own options."""

RECORDING_ERROR = "recording_error"
"""Key in the last info for the reason why the episode could not be recorded."""


NO_GAMES_TO_SAVE = (
    "snapshot_interval must be 0 (no --snapshots): only MineStudioEnv with engine: voxel has "
    "snapshots."
)

NUMBERED = "episode-"
"""Prefix of the numbered names of recordings that are given none."""

_logger = logging.getLogger(__name__)


class EpisodeRecorder(gym.Wrapper):
    """Writes every episode to disk while it is played; see `recordings`.

    Its memory use does not grow with the episode, except for a few bytes per step. The last info
    holds the path of the recording under `RECORDING`. If recording failed, it holds the reason
    under `RECORDING_ERROR`, and the episode goes on. An episode that is cut short by a reset is not
    kept. Actions of keys are recorded with their nearest tokens. Parts of the observation other
    than `image` are recorded, too, except in MineStudio's formats, which have no room for them.
    Recordings without a name are numbered; in the format `episodes`, the numbers continue those in
    the folder.

    Attributes:
        failures: Why recordings failed, one sentence each.
        length: Steps recorded of the current episode; 0 if it is not recorded, or not any more.
        beside: The other picture that was recorded last, if one is.

    Example:
        >>> env = EpisodeRecorder(MineStudioEnv(), RecorderOptions("out"))
        >>> env.reset(seed=3, options={"recording": {"name": "first", "seed": 3}})
    """

    def __init__(
        self, env: gym.Env, options: RecorderOptions | None = None, *, on_request: bool = False
    ) -> None:
        """Wrap `env`.

        Args:
            env: An environment whose observations have an `image`.
            options: None records only the episodes whose `reset` is given options.
            on_request: Complete a recording only when `keep` is called, at the end of the episode
                or before; the next reset discards one that was not kept.

        Raises:
            InvalidOptionsError: If frames have odd sides, which H.264 cannot store, or are to be
                rendered by an environment that does not render; or if the environment cannot be
                recorded (`why_unrecordable`).
        """
        super().__init__(env)
        self._given = options
        self._options = RecorderOptions("")
        self._on_request = on_request
        self._writer: EpisodeWriter | None = None
        self._last_info: Mapping[str, Any] = {}
        self.length = 0
        self.beside: Frame | None = None
        self._facts: dict[str, Any] = {}
        self._number: int | None = None
        self._seen: dict[str, NDArray] = {}
        self.failures: list[str] = []
        config = getattr(getattr(env.unwrapped, "options", None), "camera_config", None)
        self._mapper = ActionMapper(config)
        # Only of actions that are mappings, and have no such entry of their own.
        space = env.action_space
        is_mapping = isinstance(space, gym.spaces.Dict)
        self._extras = [name for name in EXTRAS if is_mapping and name not in space.spaces]
        if options is not None:
            self._adopt(options)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode and its recording.

        Args:
            seed: The episode's seed.
            options: May hold, under `RECORDING`, facts for the recording; `name` names it.
        """
        self._abandon()
        obs, info = self.env.reset(seed=seed, options=options)
        self._facts = {"seed": seed, **(options or {}).get(RECORDING, {})}
        name = self._facts.pop("name", None)
        own = self._facts.pop("options", self._given)
        self._error: str | None = None
        if own is not None:
            checked = isinstance(own, RecorderOptions)
            self._adopt(own if checked else RecorderOptions.from_mapping(own))
            name = self._next_name() if name is None else str(name)
            self._guarded(self._begin, name, obs, info)
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play and record a step; `EXTRAS` in the action are not passed to the environment."""
        extras = {name: float(action[name]) for name in self._extras if name in action}
        if extras:
            action = {name: value for name, value in action.items() if name not in extras}
        obs, reward, terminated, truncated, info = self.env.step(action)
        reward = float(reward)
        if self._writer is not None:
            outcome = (action, reward, terminated, truncated)
            self._guarded(self._add, outcome, extras, obs, info)
        self._last_info = info
        if (terminated or truncated) and not self._on_request:
            info = {**info, **self._end(info)}
        return obs, reward, terminated, truncated, info

    def keep(self, **facts: Any) -> Path:
        """Complete the current episode's recording now; further steps are not recorded.

        Args:
            facts: Facts to add, as by `note`.

        Raises:
            RecordingError: Nothing was recorded, or the recording cannot be completed.
        """
        if not self.length:
            raise RecordingError("There is nothing to keep: no step is recorded.")
        self.note(**facts)
        ended = self._end(self._last_info)
        if RECORDING_ERROR in ended:
            raise RecordingError(ended[RECORDING_ERROR])
        return Path(ended[RECORDING])

    def note(self, **facts: Any) -> None:
        """Add facts to the current episode's recording, which are written at its end."""
        self._facts |= facts

    def close(self) -> None:
        """Close the environment; an unfinished recording is not kept."""
        self._abandon()
        super().close()

    # ---------------------------------------------------------------- the recording

    def _begin(self, name: str, obs: Any, info: dict[str, Any]) -> None:
        options = self._options
        self._writer = EpisodeWriter(
            Path(options.folder) / name,
            LAYOUTS[options.format],
            options.video,
            self._mapper.keys_of,
        )
        frame, self.beside = self._pictures(obs)
        self._writer.begin(frame, info, self.beside, self._snapshot(0))
        self.length = 0
        self._seen = {}
        if options.is_own:
            self._seen = _blank_columns(self.env.observation_space)
        self._see(obs)

    def _add(
        self,
        outcome: tuple[Any, float, bool, bool],
        extras: dict[str, float],
        obs: Any,
        info: dict[str, Any],
    ) -> None:
        assert self._writer is not None
        action, reward, terminated, truncated = outcome
        frame, self.beside = self._pictures(obs)
        written: dict[str, Any] = {
            "frame": frame,
            "beside": self.beside,
            "info": info,
            "seen": self._seen,
            # A game that is over is no place to begin in.
            "snapshot": None if terminated or truncated else self._snapshot(self.length + 1),
        }
        written |= extras
        if "buttons" not in action:
            written["tokens"] = self._mapper.from_env(action)
        self._writer.add(action, reward, terminated, truncated, **written)
        self.length += 1
        self._see(obs)

    def _snapshot(self, step: int) -> bytes | None:
        """Return the whole game after a step, if it is to be saved."""
        interval = self._options.snapshot_interval
        if not interval or step % interval:
            return None
        saved: bytes = self.env.unwrapped.snapshot()
        return saved

    def _see(self, obs: Mapping[str, Any]) -> None:
        """Keep the observation, without its frame, to be recorded with the next action.

        Raises:
            RecordingError: If it does not match the observation space.
        """
        try:
            write_observation(self._seen, obs)
        except TypeError as error:
            self._abandon()
            raise RecordingError(f"The episode cannot be recorded: {error}") from error

    def _end(self, info: Mapping[str, Any]) -> dict[str, str]:
        """Complete the recording, and return the entries for the last info."""
        path = None
        if self._writer is not None:
            success = info.get(SUCCESS)
            facts = {
                **self._facts,
                "success": success if isinstance(success, bool) else None,
                "video": {"source": self._options.source, "overlay": self._options.overlay},
            }
            path = self._guarded(self._writer.finish, facts)
            self._writer, self.length = None, 0
        if self._error is not None:
            return {RECORDING_ERROR: self._error}
        return {} if path is None else {RECORDING: str(path)}

    def _guarded(self, write: Any, *arguments: Any) -> Any:
        """Call `write`; if it fails, log the error and stop recording the episode."""
        try:
            return write(*arguments)
        except RecordingError as error:
            self._error = str(error)
            self.failures.append(self._error)
            self._writer, self.length = None, 0
            _logger.error("%s The episode goes on unrecorded.", error)
            return None

    def _next_name(self) -> str:
        """Return a name that no recording in the folder has."""
        folder = Path(self._options.folder)
        self._number = _first_free(folder) if self._number is None else self._number + 1
        return f"{NUMBERED}{self._number:05d}"

    def _abandon(self) -> None:
        if self._writer is not None:
            self._writer.discard()
            self._writer, self.length = None, 0

    # ---------------------------------------------------------------- frames

    def _pictures(self, obs: Mapping[str, Any]) -> tuple[Frame, Frame | None]:
        """Return the frame to record, and the other picture if it is to be recorded, too."""
        options = self._options
        rendered = np.asarray(self.env.render()) if options.renders else None
        if rendered is None:
            return np.asarray(obs[IMAGE]), None
        observed = np.asarray(obs[IMAGE]) if IMAGE in obs else None
        if options.shows_pov:
            return rendered, observed if options.beside else None
        assert observed is not None
        return observed, rendered

    def _adopt(self, options: RecorderOptions) -> None:
        """Use these options from now on, if they fit the environment's frames."""
        renders = self.env.render_mode == "rgb_array"
        problem = why_unrecordable(self.env.observation_space, self.env.action_space, renders)
        if problem is not None:
            raise InvalidOptionsError(problem)
        self._options = options.for_env(renders=renders)
        inner = self.env.unwrapped
        if options.snapshot_interval and not (
            isinstance(inner, MineStudioEnv) and inner.has_snapshots
        ):
            raise InvalidOptionsError(f"recorder: {NO_GAMES_TO_SAVE}")
        env_options = getattr(inner, "options", None)
        sizes = []
        if self._options.renders and env_options is not None:
            sizes.append(env_options.render_size)
        observed = getattr(self.env.observation_space, "spaces", {}).get(IMAGE)
        if observed is not None and not any(side % 2 for side in observed.shape[:2]):
            self._options = self._options.with_observations()
        if observed is not None and (self._options.beside or not sizes):
            sizes.append(observed.shape[1::-1])
        for width, height in sizes:
            self._options.check_size(width, height)


def why_unrecordable(
    observation_space: gym.Space[Any], action_space: gym.Space[Any], renders: bool
) -> str | None:
    """Return why an environment's episodes cannot be recorded, in a sentence; None if they can.

    Recordings have MineStudio's layout: frames, and for each of them keys and a camera.

    Args:
        observation_space: The environment's.
        action_space: The environment's.
        renders: Whether its `render_mode` is `rgb_array`.
    """
    has_keys = isinstance(action_space, gym.spaces.Dict) and "camera" in action_space.spaces
    seen = observation_space.spaces if isinstance(observation_space, gym.spaces.Dict) else ()
    has_frames = IMAGE in seen
    if has_keys and (has_frames or renders):
        return None
    return (
        "Recordings hold frames with MineStudio's keys and camera, which an environment with "
        f"observations {shown(observation_space)} and actions {shown(action_space)} does not have: "
        "evaluate it without recording."
    )


def _first_free(folder: Path) -> int:
    """Return the number after the highest of a folder's numbered recordings."""
    names = [path.stem.removeprefix(NUMBERED) for path in folder.glob(f"{NUMBERED}*")]
    return max((int(name) for name in names if name.isdecimal()), default=-1) + 1


def _blank_columns(space: gym.Space) -> dict[str, NDArray]:
    """Return zeroed arrays for an observation, without the frame and non-numeric parts."""
    columns = {}
    for key in space.spaces if isinstance(space, gym.spaces.Dict) else ():
        if key != IMAGE:
            with contextlib.suppress(InvalidOptionsError):
                columns.update({n: part.zeros() for n, part in parts_of(space, {key}).items()})
    return columns


# ----------------------------------------------------------------- the options of `EpisodeRecorder`


@dataclass(frozen=True)
class RecorderOptions(RecordingForm):
    """What is recorded, where to, and how."""

    folder: str = option(MISSING, "Where recordings go.", wording="the path of a folder")

    @property
    def shows_pov(self) -> bool:
        """Whether frames are rendered at `render_size`."""
        return self.source == POV or not self.is_own

    @property
    def renders(self) -> bool:
        """Whether anything is rendered at `render_size`."""
        return self.shows_pov or self.beside

    @property
    def is_own(self) -> bool:
        """Whether the format is this package's; others have rendered frames only."""
        return self.format == OWN

    @property
    def video(self) -> VideoOptions:
        """How frames are shown and stored."""
        return VideoOptions(self.media, self.fps, self.crf, self.preset, self.overlay)

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> RecorderOptions:
        """Check options from a user.

        Raises:
            InvalidOptionsError: If anything is wrong; lists all problems.
        """
        problems = Problems("recorder")
        known = problems.known("option", options, [option.name for option in fields(cls)])
        checked = cls(**{"folder": None, **known})
        problems.messages += option_problems(cls, vars(checked), "recorder: ")
        if checked.format in (CONTRACTOR, DATASET) and checked.media != "h264":
            problems.add("media", checked.media, f"must be h264 with format {checked.format}")
        if checked.beside is True and not checked.is_own:
            problems.add("beside", checked.beside, f"must be false with format {checked.format}")
        if checked.snapshot_interval and not checked.is_own:
            rule = f"must be 0 with format {checked.format}"
            problems.add("snapshot_interval", checked.snapshot_interval, rule)
        problems.raise_if_any()
        return checked

    def for_env(self, renders: bool) -> RecorderOptions:
        """Return these options with `auto` resolved.

        Args:
            renders: Whether the environment's `render_mode` is `rgb_array`.

        Raises:
            InvalidOptionsError: If rendered frames are required and the environment has none.
        """
        if self.renders and not renders:
            name = "format" if not self.is_own else "source" if self.shows_pov else "beside"
            raise InvalidOptionsError(
                f"recorder: {name} {getattr(self, name)} records rendered frames, and the "
                "environment has none. Set its render_mode to rgb_array, or record in format "
                f"{OWN} with source {OBSERVATION}."
            )
        if self.source != AUTO:
            return self
        return replace(self, source=POV if renders else OBSERVATION)

    def with_observations(self) -> RecorderOptions:
        """Return these options with what the agent saw next to rendered frames: it is at hand."""
        is_apart = self.source == POV and self.is_own
        return replace(self, beside=True) if is_apart else self

    def check_size(self, width: int, height: int) -> None:
        """Check that frames of a size can be stored.

        Raises:
            InvalidOptionsError: If they have odd sides, which H.264 cannot store.
        """
        if self.media != "h264" or self.overlay:
            return
        if width % 2 or height % 2:
            raise InvalidOptionsError(
                f"recorder: H.264 stores frames of even width and height only; got "
                f"{width}x{height}. Change obs_size or render_size, or use media: jpeg."
            )
