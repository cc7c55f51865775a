"""Options of what recordings show and how they are stored, for commands and experiment files.

No recording code is imported here, so that `rllib evaluate --help`, which lists them, is fast.
"""

from __future__ import annotations

from dataclasses import dataclass

from rllib_minestudio.foundation.names import POV
from rllib_minestudio.foundation.options import MANY, Flag, option

OWN, CONTRACTOR, DATASET = "episodes", "contractor", "minestudio-dataset"
FORMATS = (OWN, CONTRACTOR, "minestudio", DATASET)
OBSERVATION, AUTO = "observation", "auto"
SOURCES = (OBSERVATION, POV, AUTO)
MEDIA = ("h264", "jpeg")
PRESETS = (
    *("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower"),
    *("veryslow", "placebo"),
)
"""x264's presets, from fast with large files to slow with small ones."""
MAX_CRF = 51


@dataclass(frozen=True, kw_only=True)
class RecordingForm:
    """What a recording shows and in which format; its path is not part of this."""

    format: str = option(
        OWN,
        "`episodes`, this package's (see `recordings`); `contractor`, NAME.mp4 with NAME.jsonl, as "
        "OpenAI published recordings of people; `minestudio`, the files of MineStudio's inference; "
        "or `minestudio-dataset`, its LMDB datasets.",
        choices=FORMATS,
    )
    source: str = option(
        OBSERVATION,
        "`observation`, the frames that the agent saw, for cloning; or `pov`, frames at "
        "`render_size`, which the embedded engine renders in addition; the formats of others have "
        "no other. `auto` is `pov` if the environment renders, and `observation` if it does not.",
        choices=SOURCES,
    )
    beside: bool = option(
        False,
        "With source `observation`, also store what a person sees, which has to be rendered in "
        "addition. With `pov`, what the agent saw is stored anyway. Only in format `episodes`.",
    )
    overlay: bool = option(
        False,
        "Show keys, camera, step, reward, return, value and divergence in a strip beneath the "
        "frames.",
    )
    media: str = option(
        "h264",
        "How frames are stored: `h264`, one mp4 file, or `jpeg`, a folder of pictures.",
        choices=MEDIA,
    )
    fps: int = option(
        20,
        "Frames per second of playback; MineStudio's inference files have 30, the other formats of "
        "others 20.",
        least=1,
        most=240,
        wording="an integer from 1 to 240",
    )
    crf: int = option(
        23,
        "x264's constant rate factor: 0 lossless, 23 good, 51 worst.",
        least=0,
        most=MAX_CRF,
        wording=f"an integer from 0 to {MAX_CRF}",
    )
    preset: str = option(
        "ultrafast", "x264's trade of speed for size.", Flag("PRESET"), choices=PRESETS
    )
    snapshot_interval: int = option(
        0,
        "Also save the whole game at the beginning and whenever so many steps were played (20 are "
        "a second), so that an episode can begin there, or a person play on (`rllib watch`); 0 "
        "saves none. Only in format `episodes`, and of the embedded engine.",
        Flag("STEPS", names=("--snapshots",)),
        most=MANY,
    )
