"""Writing an episode while it is played; its files appear when the episode is complete."""

from __future__ import annotations

import glob
import json
import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rllib_minestudio.errors import RecordingError
from rllib_minestudio.foundation.files import Unfinished, put_in_place
from rllib_minestudio.foundation.recording_options import CONTRACTOR, DATASET, OWN, RecordingForm
from rllib_minestudio.foundation.values import plain
from rllib_minestudio.recordings.columns import Columns, InfoLines, ObservationColumns
from rllib_minestudio.recordings.contractor import ContractorLayout
from rllib_minestudio.recordings.layout import (
    BESIDE_FILE,
    BESIDE_FOLDER,
    EPISODE_FILE,
    FORMAT,
    FRAME_NAME,
    FRAMES_FOLDER,
    INFOS_FILE,
    OBSERVATIONS,
    SNAPSHOT_NAME,
    SNAPSHOTS_FOLDER,
    STEPS_FILE,
    VERSION,
    VIDEO_FILE,
    Layout,
    RecordedStep,
    Sight,
    attempt,
    reporting,
)
from rllib_minestudio.recordings.minestudio_dataset import META_INFO, DatasetLayout
from rllib_minestudio.recordings.minestudio_formats import InferenceLayout
from rllib_minestudio.recordings.video import Frame, VideoOptions, with_key_strip


class EpisodeLayout(Layout):
    """This package's own format: a folder that `Recording` reads.

    Memory per step: the row of `Columns`, and the observation without the frame.
    """

    def __init__(self, path: Path, video: VideoOptions) -> None:
        self.path = path
        unfinished = Unfinished(path)
        unfinished.remove_abandoned()
        self.partial = unfinished.partial
        self.partial.mkdir(parents=True)
        self._video = video
        self._size = (0, 0)
        self._columns = Columns()
        self._observations = ObservationColumns()
        self._infos = InfoLines(self.partial / INFOS_FILE)
        folder = self.partial / FRAMES_FOLDER
        self.frames = video.sink(self.partial / VIDEO_FILE, folder, FRAME_NAME)
        # For people, even if the frames themselves are to be lossless.
        lossy = replace(video, crf=max(video.crf, RecordingForm.crf))
        beside = self.partial / BESIDE_FOLDER
        self._beside = lossy.sink(self.partial / BESIDE_FILE, beside, FRAME_NAME)
        self.files = (self._infos, self._beside)

    def see(self, sight: Sight) -> None:
        """Write the frame that is shown, the info, and the game if it is to be saved."""
        height, width, _ = sight.shown.shape
        self._size = (width, height)
        self.frames.add(sight.shown)
        if sight.beside is not None:
            self._beside.add(sight.beside)
        if sight.snapshot is not None:
            folder = self.partial / SNAPSHOTS_FOLDER
            folder.mkdir(exist_ok=True)
            (folder / SNAPSHOT_NAME.format(len(self._columns))).write_bytes(sight.snapshot)
        self._infos.add(sight.info)

    def act(self, step: RecordedStep) -> None:
        """Keep a row.

        Raises:
            RecordingError: The observation differs from the first, or all are too large.
        """
        try:
            self._observations.add(step.seen)
        except ValueError as error:
            raise RecordingError(f"{str(self.path)!r} cannot be recorded: {error}.") from error
        outcome = (step.reward, step.terminated, step.truncated)
        self._columns.add(step.action, *outcome, step.value, step.kl, step.tokens)

    def complete(self, facts: Mapping[str, Any]) -> list[tuple[Path, Path]]:
        """Write the columns and `EPISODE_FILE`; the folder is renamed as a whole."""
        columns = {**self._columns.arrays(), **self._observations.arrays()}
        np.savez_compressed(self.partial / STEPS_FILE, **columns)  # type: ignore[arg-type]
        text = json.dumps(plain(self._described(facts)), indent=2)
        (self.partial / EPISODE_FILE).write_text(text + "\n")
        return [(self.partial, self.path)]

    def _described(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        width, height = self._size
        return {
            "format": FORMAT,
            "version": VERSION,
            **facts,
            "keys": self._columns.keys,
            OBSERVATIONS: self._observations.description(),
            "video": {
                **facts.get("video", {}),
                "media": self._video.media,
                "width": width,
                "height": height,
                "fps": self._video.fps,
                "crf": self._video.crf,
            },
        }


LayoutMaker = Callable[[Path, VideoOptions], Layout]

LAYOUTS: dict[str, type[Layout]] = {
    OWN: EpisodeLayout,
    CONTRACTOR: ContractorLayout,
    "minestudio": InferenceLayout,
    DATASET: DatasetLayout,
}
"""The formats that users can choose, by name."""


def files_of(recording: Path) -> list[Path]:
    """Return all existing files and folders of a recording.

    Args:
        recording: The path that `EpisodeWriter.finish` returned.
    """
    folder, name = recording.parent, recording.stem
    if recording.suffix == ".jsonl":
        return sorted(folder.glob(f"{glob.escape(name)}.*"))
    if name.startswith("info_"):
        return sorted(folder.glob(f"*_{name.removeprefix('info_')}*"))
    if folder.name == META_INFO:
        return sorted(folder.parent.glob(f"*/{glob.escape(recording.name)}"))
    return [recording]


class EpisodeWriter:
    """Streams an episode into a hidden folder, and moves its files to their final paths at the end.

    Only the current frame, the last info, and what the layout keeps are in memory. If the process
    is killed, it leaves a hidden folder, which readers skip, and never half a recording.

    Attributes:
        path: The recording's path.

    Example:
        >>> writer = EpisodeWriter(Path("out/episode-00003"))
        >>> writer.begin(first_frame, first_info)
        >>> writer.add(action, reward, terminated, truncated, frame=next_frame, info=next_info)
        >>> writer.finish({"seed": 3, "success": True})
    """

    def __init__(
        self,
        path: Path,
        layout: LayoutMaker = EpisodeLayout,
        video: VideoOptions | None = None,
        keys_of: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda action: action,
    ) -> None:
        """Create the hidden folder.

        Args:
            path: The recording's folder or, for other layouts, the path from which its files' paths
                are derived. Existing files are replaced at the end.
            layout: Creates the layout, such as one of `LAYOUTS`.
            video: How frames are shown and stored.
            keys_of: Converts an action to keys and degrees, for layouts and overlays that need
                them.

        Raises:
            RecordingError: The path cannot be written to.
        """
        self._video = video or VideoOptions()
        self._keys_of = keys_of
        self._length = 0
        self._return = 0.0
        with reporting(path):
            self._layout = layout(path, self._video)
        self.path = self._layout.path

    def begin(
        self,
        frame: Frame,
        info: Mapping[str, Any],
        beside: Frame | None = None,
        snapshot: bytes | None = None,
    ) -> None:
        """Write the reset's frame, (height, width, 3) uint8 RGB, and its info; see `add`."""
        numbers = {"step": 0, "reward": 0, "return": 0}
        sight = self._sight(Sight(frame, frame, info, beside, snapshot), {}, numbers)
        with reporting(self.path, self.discard):
            self._layout.see(sight)

    def add(
        self,
        action: Mapping[str, Any],
        reward: float,
        terminated: bool,
        truncated: bool,
        *,
        frame: Frame,
        info: Mapping[str, Any],
        value: float = math.nan,
        kl: float | None = None,
        seen: Mapping[str, Any] | None = None,
        tokens: tuple[int, int] | None = None,
        beside: Frame | None = None,
        snapshot: bytes | None = None,
    ) -> None:
        """Write one step.

        Args:
            action: Tokens or keys (see `Columns.add`).
            reward: The reward.
            terminated: Whether the step terminated the episode.
            truncated: Whether the step truncated the episode.
            frame: The frame after the step.
            info: The info after the step.
            value: The policy's value of the frame before; NaN if unknown.
            kl: KL(policy || prior) in nats at that frame; None if there is no prior.
            seen: The observation before the action, without the frame: name -> array. Names, shapes
                and dtypes must be the same in every step.
            tokens: The tokens nearest to an action of keys; given for every step or for none.
            beside: Another picture after the step; given for the reset and every step, or never.
            snapshot: The whole game after the step, if it is to be saved.

        Raises:
            RecordingError: The disk is full, the folder is gone, or the layout cannot hold the
                step. The whole recording has been removed.
        """
        if self._layout.takes_keys:
            action = self._keys_of(action)
        self._length += 1
        self._return += reward
        numbers = {"step": self._length, "reward": reward, "return": self._return}
        if not math.isnan(value):
            numbers["value"] = value
        if kl is not None:
            numbers["KL"] = kl
        step = RecordedStep(action, reward, terminated, truncated, value, kl, seen or {}, tokens)
        sight = self._sight(Sight(frame, frame, info, beside, snapshot), action, numbers)
        with reporting(self.path, self.discard):
            self._layout.act(step)
            self._layout.see(sight)

    def finish(self, facts: Mapping[str, Any] | None = None) -> Path:
        """Complete the recording and move its files to their final paths.

        Args:
            facts: Facts about the episode besides its length, its return and the video's size, to
                be stored if the layout has a place for them.

        Returns:
            The path that identifies the recording, such as its folder.

        Raises:
            RecordingError: It cannot be completed, and has been removed.
        """
        layout = self._layout
        with reporting(self.path, self.discard):
            for file in (layout.frames, *layout.files):
                file.close()
            facts = {"length": self._length, "return": self._return, **(facts or {})}
            for source, place in layout.complete(facts):
                place.parent.mkdir(exist_ok=True)
                put_in_place(source, place)
            shutil.rmtree(layout.partial, ignore_errors=True)
        return place

    def discard(self) -> None:
        """Stop and remove what was written."""
        attempt(self._layout.frames.discard, *(file.close for file in self._layout.files))
        shutil.rmtree(self._layout.partial, ignore_errors=True)

    def _sight(
        self, sight: Sight, action: Mapping[str, Any], numbers: Mapping[str, float]
    ) -> Sight:
        """Return what is to be written; an overlay shows the step that led to it."""
        if not self._video.overlay:
            return sight
        return replace(sight, shown=with_key_strip(sight.frame, self._keys_of(action), numbers))
