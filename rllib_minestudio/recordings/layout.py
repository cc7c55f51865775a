"""What a recording consists of: file names, columns, versions.

One finished episode is one folder. With N steps it holds N + 1 frames and N + 1 infos: frame t was
seen, row t of the columns says what was done then and what came of it, frame t + 1 was seen after.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rllib_minestudio.plain_values import plain

FORMAT = "rllib_minestudio.episode"
VERSION = 1

EPISODE_FILE = "episode.json"
"""Identity and outcome, plain JSON."""

STEPS_FILE = "steps.npz"
"""The columns, compressed; loads with `allow_pickle=False`."""

INFOS_FILE = "infos.jsonl.gz"
"""One JSON object per line; line 0 is the reset's. See `InfoDeltas` for what a line holds."""

VIDEO_FILE = "video.mp4"
FRAMES_FOLDER = "frames"
FRAME_NAME = "{:06d}.jpg"

TOKEN_COLUMNS: dict[str, type] = {"buttons": np.uint16, "camera": np.uint16}
"""The agent's exact action tokens, where the environment takes tokens."""

KEY_COLUMNS: dict[str, type] = {"keys": np.uint8, "degrees": np.float32}
"""Keys pressed (N, K), in the order of `keys` in `EPISODE_FILE`, and (pitch, yaw) (N, 2) in
degrees, where the environment takes keys instead."""

OUTCOME_COLUMNS: dict[str, type] = {
    "reward": np.float32,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "value": np.float32,
}
"""What came of each step, and the policy's value of the frame before it (NaN: not told)."""

KL_COLUMN: dict[str, type] = {"kl": np.float32}
"""KL(policy || prior) in nats before each step, where there was a prior to compare with."""

OBSERVATIONS = "observations"
"""Key in `EPISODE_FILE` of what was observed besides the frame; see `observations`."""

REMOVED = "-"
"""Key of an info line that lists the keys which the info before had and this one has not."""


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=plain)


def to_json(value: Any) -> str:
    """Write `plain(value)` as JSON, without spaces."""
    try:
        return _ENCODER.encode(value)  # in C; an info is written every step
    except TypeError:  # a key that is neither a string nor a number
        return _ENCODER.encode(plain(value))
