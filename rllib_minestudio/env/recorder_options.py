"""The options of `EpisodeRecorder`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from rllib_minestudio.episode_info import POV
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_checks import Problems
from rllib_minestudio.option_fields import option, option_problems
from rllib_minestudio.recording_form import AUTO, DATASET, FORMATS, OBSERVATION, RecordingForm
from rllib_minestudio.recordings.minestudio import FRAME_SIZE
from rllib_minestudio.recordings.video import VideoOptions


@dataclass(frozen=True)
class RecorderOptions(RecordingForm):
    """What is recorded, where to, and how."""

    folder: str = option(MISSING, "Where recordings go.", wording="the path of a folder")

    @property
    def shows_pov(self) -> bool:
        """Whether frames are rendered at `render_size`."""
        return self.source == POV or self.is_minestudios

    @property
    def is_minestudios(self) -> bool:
        """Whether it is a format with rendered frames, and nothing that was observed besides."""
        return self.format != "episodes"

    @property
    def video(self) -> VideoOptions:
        """How frames are shown and stored."""
        return VideoOptions(self.media, self.fps, self.crf, self.preset, self.overlay)

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> RecorderOptions:
        """Check options as they come from a user.

        Raises:
            InvalidOptionsError: If anything is wrong; lists all problems.
        """
        problems = Problems("recorder")
        known = problems.known("option", options, [option.name for option in fields(cls)])
        checked = cls(**{"folder": None, **known})
        problems.messages += option_problems(cls, vars(checked), "recorder: ")
        if checked.format == DATASET and checked.media != "h264":
            problems.add("media", checked.media, f"must be h264 with format {DATASET}")
        if checked.overlay is True and checked.format == DATASET:
            rule = f"must be false with format {DATASET}, whose frames have one size"
            problems.add("overlay", checked.overlay, rule)
        problems.raise_if_any()
        return checked

    def for_env(self, renders: bool) -> RecorderOptions:
        """Return these options with `auto` resolved.

        Args:
            renders: Whether the environment's `render_mode` is `rgb_array`.

        Raises:
            InvalidOptionsError: Its rendered frames are asked for, and it has none.
        """
        if self.shows_pov and not renders:
            name = "format" if self.is_minestudios else "source"
            raise InvalidOptionsError(
                f"recorder: {name} {getattr(self, name)} records rendered frames, and the "
                "environment has none. Set its render_mode to rgb_array, or record in format "
                f"{FORMATS[0]} with source {OBSERVATION}."
            )
        if self.source != AUTO:
            return self
        return replace(self, source=POV if renders else OBSERVATION)

    def check_size(self, width: int, height: int) -> None:
        """Check that frames of a size can be stored.

        Raises:
            InvalidOptionsError: If they have odd sides, which H.264 cannot store, or are not those
                of MineStudio's datasets.
        """
        if self.media != "h264" or self.overlay:
            return
        if self.format == DATASET and (width, height) != FRAME_SIZE:
            size = "x".join(map(str, FRAME_SIZE))
            raise InvalidOptionsError(
                f"recorder: format {DATASET} has frames of {size}; got {width}x{height}. Set "
                "render_size: MineStudio's converter skips all others."
            )
        if width % 2 or height % 2:
            raise InvalidOptionsError(
                f"recorder: H.264 stores frames of even width and height only; got "
                f"{width}x{height}. Change obs_size or render_size, or use media: jpeg."
            )
