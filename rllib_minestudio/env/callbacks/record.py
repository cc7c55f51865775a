"""Record and SpeedTest: videos of the episodes, and the speed of the environment."""

from __future__ import annotations

import logging
import os
import time
from functools import partial
from pathlib import Path

import numpy as np

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.errors import InvalidOptionsError, RecordingError
from rllib_minestudio.foundation.observations import IMAGE
from rllib_minestudio.foundation.options import Problems, is_integer
from rllib_minestudio.recordings.minestudio_formats import (
    Contents,
    PlayLayout,
    play_name,
    play_number,
)
from rllib_minestudio.recordings.video import VideoOptions
from rllib_minestudio.recordings.writer import EpisodeWriter

_FRAME_TYPES = ("pov", "obs")
_SWITCHES = (
    *("recording", "show_actions", "record_actions", "record_infos"),
    "record_origin_observation",
)
_MAX_FPS = 240

_KEY = "R"
"""Info key by which a callback for human players starts (True) and stops (False) the recording."""
_HELP = "Press 'R' to start/stop recording."
_MESSAGE = "message"

_logger = logging.getLogger(__name__)


class RecordCallback(MinecraftCallback):
    """Writes episodes into a folder as `episode_1.mp4`, `episode_2.mp4`, ...

    An episode is written when the next one begins or the environment is closed. The files are
    MineStudio's (see `PlayLayout` in `recordings.minestudio`); for recordings with rewards, values
    and an index, use `rllib evaluate` or `EpisodeRecorder` instead. It records actions and infos as
    changed by the callbacks listed before it, so list it last.

    MineStudio's callback differs:

    - It holds all frames in memory until the episode ends: 690 kB each at 640x360.
    - It counts from 1 whenever it is constructed and overwrites existing files, and all workers
      write the same files. Here numbers continue after the highest in the folder. Of several
      environments with the same options, each has its own folder, `env-<worker>-<index>`; the very
      first one, which is the only one outside RLlib, writes into `record_path` itself.
    - Its `show_actions` lists all keys and, from the second episode on, those of earlier steps.
      Here the keys that are pressed light up in a strip beneath the frame, which is enlarged if it
      is too narrow.
    - Its `record_infos` with `frame_type: obs` writes the game's frames into the JSON.
    """

    def __init__(
        self,
        record_path: str | os.PathLike[str],
        fps: int = 20,
        frame_type: str = "pov",
        recording: bool = True,
        show_actions: bool = False,
        record_actions: bool = False,
        record_infos: bool = False,
        record_origin_observation: bool = False,
    ) -> None:
        """Check and keep the arguments; nothing is written before the first reset.

        Args:
            record_path: The folder.
            fps: Frames per second of playback; 20 is the game's speed.
            frame_type: "pov", frames at `render_size`, which the embedded engine draws in
                addition; or "obs", those that the agent sees.
            recording: Whether to record from the beginning. A callback can start or stop recording
                by True or False in the info under "R", as MineStudio's Play does.
            show_actions: Whether the video shows the actions in a strip beneath its frames.
            record_actions: Whether to write the actions to `episode_<number>_action.json`.
            record_infos: Whether to write the infos to `episode_<number>_info.json`.
            record_origin_observation: Whether to write the frames, as they are, to
                `episode_<number>.npy`.

        Raises:
            InvalidOptionsError: If an argument has a wrong type or value; lists all problems.
        """
        problems = Problems()
        if not isinstance(record_path, str | os.PathLike) or not os.fspath(record_path):
            problems.add("record_path", record_path, "must be the path of a folder")
        if not is_integer(fps) or not 1 <= fps <= _MAX_FPS:
            problems.add("fps", fps, f"must be an integer from 1 to {_MAX_FPS}")
        problems.choice("frame_type", frame_type, _FRAME_TYPES)
        given = (recording, show_actions, record_actions, record_infos, record_origin_observation)
        for name, value in zip(_SWITCHES, given, strict=True):
            if not isinstance(value, bool):
                problems.add(name, value, "must be true or false")
        problems.raise_if_any()
        self.record_path = Path(record_path).expanduser()
        self.fps = fps
        self.frame_type = frame_type
        self.recording = recording
        self.show_actions = show_actions
        self.episode_id = 0
        contents = Contents(record_actions, record_infos, record_origin_observation)
        self._layout = partial(PlayLayout, contents=contents)
        self._writer: EpisodeWriter | None = None
        self._frames = 0
        self._action: EnvAction = {}

    def before_reset(self, sim: Sim, reset_flag: bool) -> bool:
        """Complete the episode's files."""
        self._finish()
        if self.recording:
            self.episode_id += 1
        return reset_flag

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Begin an episode's files with its first frame."""
        sim.callback_messages.add(_HELP)
        info = self._with_state(info)
        if self.recording:
            self._frames = 1
            self._begin(sim, obs, info)
        return obs, info

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Remember the action."""
        self._action = action
        return action

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Start or stop recording if the info says so, and record the step."""
        if self.recording and not info.get(_KEY, True):
            self.recording = False
            self._finish()
            self.episode_id += 1
        starts = not self.recording and info.get(_KEY, False)
        if starts:
            self.recording = True
        self._frames += self.recording
        info = self._with_state(info)
        if starts:
            self._begin(sim, obs, info)
        elif self._writer is not None:
            outcome = (self._action, reward, terminated, truncated)
            try:
                self._writer.add(*outcome, frame=self._frame(sim, obs), info=info)
            except RecordingError as error:
                self._fail(error)
        return obs, reward, terminated, truncated, info

    def before_close(self, sim: Sim) -> None:
        """Complete the last episode's files."""
        self._finish()

    def _begin(self, sim: Sim, obs: Obs, info: Info) -> None:
        name = "render_size" if self.frame_type == "pov" else "obs_size"
        width, height = getattr(sim, name)
        if width % 2 or height % 2:
            raise InvalidOptionsError(
                f"Record: H.264 stores frames of even width and height only; got {width}x{height}. "
                f"Change {name}."
            )
        folder = self.record_path
        if sim.worker_index or sim.vector_index:
            folder /= f"env-{sim.worker_index}-{sim.vector_index}"
        video = VideoOptions(fps=self.fps, overlay=self.show_actions)
        try:
            self._writer = EpisodeWriter(folder / play_name(self.episode_id), self._layout, video)
            self.episode_id = play_number(self._writer.path)
            self._writer.begin(self._frame(sim, obs), info)
        except RecordingError as error:
            self._fail(error)

    def _fail(self, error: RecordingError) -> None:
        """Log the error and stop recording the episode, of which nothing is left."""
        self._writer = None
        _logger.error("%s The episode goes on unrecorded.", error)

    def _with_state(self, info: Info) -> Info:
        """Return the info with a text about the state of the recording."""
        state = f"Recording: {'On' if self.recording else 'Off'}, Recording Time: {self._frames}"
        return {**info, _MESSAGE: {**info.get(_MESSAGE, {}), "RecordCallback": state}}

    def _frame(self, sim: Sim, obs: Obs) -> np.ndarray:
        if self.frame_type == "obs":
            return obs[IMAGE]
        return sim.env.render(sim.render_size)

    def _finish(self) -> None:
        self._frames = 0
        if self._writer is None:
            return
        try:
            video = self._writer.finish()
            _logger.info("Episode %d is recorded in %s.", self.episode_id, video)
        except RecordingError as error:
            _logger.error("%s The episode is not recorded.", error)
        self._writer = None

    def __repr__(self) -> str:
        return f"RecordCallback({str(self.record_path)!r})"


# ---------------------------------------------------------------------------------------- SpeedTest
# How fast the game and the callbacks are.

_LONGEST = 10**9


class SpeedTestCallback(MinecraftCallback):
    """Prints the mean number of steps per second so far, every `interval` steps.

    The time is that of the game's tick, of the `before_step` hooks after this callback's, and of
    the `after_step` hooks before this callback's; resets and the policy are not included. It is
    printed rather than logged: a user who asks for it wants to see it, and Ray shows what its
    workers print.

    Attributes:
        num_steps: Steps so far, over all episodes.
        total_times: Seconds that they took.
    """

    def __init__(self, interval: int = 100) -> None:
        """Check and keep the interval.

        Args:
            interval: Steps from one line to the next.

        Raises:
            InvalidOptionsError: If it is not an integer of at least 1.
        """
        problems = Problems()
        if not is_integer(interval) or not 1 <= interval <= _LONGEST:
            problems.add("interval", interval, f"must be an integer from 1 to {_LONGEST} (steps)")
        problems.raise_if_any()
        self.interval = interval
        self.num_steps = 0
        self.total_times = 0.0
        self._begun = 0.0

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Start the clock."""
        self._begun = time.perf_counter()
        return action

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Stop the clock; print a line every `interval` steps."""
        self.total_times += time.perf_counter() - self._begun
        self.num_steps += 1
        if self.num_steps % self.interval == 0:
            print(
                f"SpeedTest: {self.num_steps / self.total_times:.1f} steps/s, "
                f"{1000 * self.total_times / self.num_steps:.3f} ms/step over "
                f"{self.num_steps} steps",
                flush=True,
            )
        return obs, reward, terminated, truncated, info

    def __repr__(self) -> str:
        return f"SpeedTestCallback(interval={self.interval})"
