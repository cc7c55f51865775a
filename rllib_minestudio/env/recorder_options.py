"""The options of `EpisodeRecorder`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_checks import Problems, is_integer
from rllib_minestudio.recordings.minestudio_dataset import FRAME_SIZE
from rllib_minestudio.recordings.writer import MEDIA, VideoOptions

DATASET = "minestudio-dataset"
FORMATS = ("episodes", "minestudio", DATASET)
OBSERVATION, POV, AUTO = "observation", "pov", "auto"
SOURCES = (OBSERVATION, POV, AUTO)
PRESETS = (
    *("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower"),
    *("veryslow", "placebo"),
)
"""x264's, from fast and large to slow and small."""
MAX_CRF = 51


@dataclass(frozen=True)
class RecorderOptions:
    """What is recorded, and how.

    Attributes:
        folder: Where recordings go.
        format: `episodes`, this package's (see `recordings`); `minestudio`, the files of its
            inference, or `minestudio-dataset`, the source files of its datasets.
        source: `observation`, the frames that the agent saw, or `pov`, frames at `render_size`,
            which the embedded engine renders in addition; MineStudio's formats have no other.
            `auto` is `pov` if the environment renders, and `observation` if it does not.
        overlay: Whether to write actions, reward, return, value and divergence onto the frames.
        media: `h264` or `jpeg`.
        fps: Frames per second of playback; MineStudio's inference files have 30, its datasets 20.
        crf: x264's constant rate factor: 0 lossless, 23 good, 51 worst.
        preset: x264's trade of speed for size.
    """

    folder: str
    format: str = "episodes"
    source: str = OBSERVATION
    overlay: bool = False
    media: str = "h264"
    fps: int = field(default=VideoOptions.fps)
    crf: int = field(default=VideoOptions.crf)
    preset: str = VideoOptions.preset

    @property
    def shows_pov(self) -> bool:
        """Whether frames are rendered at `render_size`."""
        return self.source == POV or self.is_minestudios

    @property
    def is_minestudios(self) -> bool:
        """Whether actions are written as keys and degrees, whatever the agent gives."""
        return self.format != "episodes"

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> RecorderOptions:
        """Check options as they come from a user.

        Raises:
            InvalidOptionsError: If anything is wrong; lists all problems.
        """
        problems = Problems("recorder")
        known = problems.known("option", options, [option.name for option in fields(cls)])
        if not isinstance(known.get("folder"), str):
            problems.add("folder", known.get("folder"), "must be the path of a folder")
            known["folder"] = ""
        checked = cls(**known)
        problems.choice("format", checked.format, FORMATS)
        problems.choice("source", checked.source, SOURCES)
        problems.choice("media", checked.media, MEDIA)
        problems.choice("preset", checked.preset, PRESETS)
        if checked.format == DATASET and checked.media != "h264":
            problems.add("media", checked.media, f"must be h264 with format {DATASET}")
        if not isinstance(checked.overlay, bool):
            problems.add("overlay", checked.overlay, "must be true or false")
        if not is_integer(checked.fps) or not 1 <= checked.fps <= 240:
            problems.add("fps", checked.fps, "must be an integer from 1 to 240")
        if not is_integer(checked.crf) or not 0 <= checked.crf <= MAX_CRF:
            problems.add("crf", checked.crf, f"must be an integer from 0 to {MAX_CRF}")
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
