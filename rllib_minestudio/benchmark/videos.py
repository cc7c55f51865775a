"""The videos of a task: its first success and its first failure, out of all that are recorded."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rllib_minestudio.episode_info import POV
from rllib_minestudio.evaluation.episode import OUTCOMES, EvaluatedEpisode
from rllib_minestudio.evaluation.keep import remove_recording
from rllib_minestudio.recording_form import OBSERVATION
from rllib_minestudio.recordings.layout import VIDEO_FILE

_RECORDINGS = "recordings"
"""Where a task's episodes are recorded while it is played; nothing is left of it."""

_CRF = 30
"""Of x264: a minute of 128x128 takes some hundred KB, and pixels are still pixels."""


class KeptVideos:
    """Keeps the recording of the lowest episode of each outcome, in whatever order they end.

    So the videos are the same for any number of workers.

    Args:
        folder: The task's.
        env_config: Of its environment.
    """

    def __init__(self, folder: Path, env_config: Mapping[str, Any]) -> None:
        """Remove what an interrupted attempt at the task has left."""
        self._folder = folder
        self._recordings = folder / _RECORDINGS
        self._kept: dict[str, EvaluatedEpisode] = {}
        self._env_config = env_config
        self.problems: list[str] = []
        """Why episodes could not be recorded."""
        shutil.rmtree(self._recordings, ignore_errors=True)

    @property
    def recorder(self) -> dict[str, Any]:
        """Options of the recorder.

        What the player sees is filmed, unless it has odd sides, which H.264 cannot store.
        """
        sides = self._env_config.get("obs_size", (128, 128))
        source = POV if any(side % 2 for side in sides) else OBSERVATION
        folder = str(self._recordings.resolve())
        return {"folder": folder, "source": source, "crf": _CRF}

    def __enter__(self) -> KeptVideos:
        """Begin the task."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing but the kept videos, whatever happened."""
        shutil.rmtree(self._recordings, ignore_errors=True)

    def note(self, episode: EvaluatedEpisode) -> EvaluatedEpisode:
        """Keep or remove an episode's recording; returns the episode without it."""
        if episode.recording_error is not None:
            self.problems.append(episode.recording_error)
        if episode.recording is not None:
            kept = self._kept.get(episode.outcome)
            if kept is None or episode.index < kept.index:
                self._kept[episode.outcome], episode_to_go = episode, kept
            else:
                episode_to_go = episode
            if episode_to_go is not None:
                remove_recording(str(episode_to_go.recording))
        return replace(episode, recording=None)

    def finish(self) -> dict[str, Path]:
        """Put the kept videos beside the task's results.

        Returns:
            Outcome -> file.
        """
        files = {}
        for outcome in OUTCOMES:
            if outcome in self._kept:
                video = Path(str(self._kept[outcome].recording)) / VIDEO_FILE
                files[outcome] = self._folder / f"{outcome}.mp4"
                video.replace(files[outcome])
        return files
