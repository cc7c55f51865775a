"""Windows of MineStudio's datasets by its own conventions, as `RawDataset` makes them.

For programs that were written for MineStudio's data pipeline, without its packages, its unpickling
and its threads. Cloning does not need them: it cuts windows of its own (`windows.py`).

Source: MineStudio 1.1.6, data/minecraft/dataset_raw.py (`RawDataset`), core.py (`read_frames`) and
callbacks/ (`do_merge`, `do_slice`, `do_pad`, `do_postprocess`).
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.demonstrations.windows import filled, tokens_of
from rllib_minestudio.errors import RecordingError
from rllib_minestudio.foundation.buttons import KEYS
from rllib_minestudio.foundation.options import broken_rule
from rllib_minestudio.recordings.minestudio_dataset import (
    ACTION,
    IMAGE,
    META_INFO,
    dataset_at,
    is_dataset,
)

_Mask = NDArray[np.uint8]


class _Span(NamedTuple):
    """The frames of a window that an episode has, and what is missing.

    Attributes:
        start: First frame.
        stop: Frame after the last one.
        left: Rows of padding before them.
        length: Rows of the window, where none are skipped.
    """

    start: int
    stop: int
    left: int
    length: int


class MineStudioWindows:
    """The windows of a dataset, in MineStudio's order: by episode, then by time.

    Like MineStudio's, they leave out episodes of which a modality is missing.

    Args:
        folder: The dataset, with the folders `action`, `image` (or `video`) and, if the infos are
            wanted, `meta_info`.
        win_len: Rows per window.
        skip_frame: Each row is so many frames after the one before. Windows begin every `win_len`
            frames nonetheless, as in MineStudio, and so overlap.
        size: (width, height) of the frames.
        previous_action: Adds the action before each row, from one frame before the window
            (`read_bias=-1`, `win_bias=1`); all actions then count in `action_mask`, padding too.

    Raises:
        RecordingError: The folder is no dataset.
        ValueError: `win_len` or `skip_frame` is not positive.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        win_len: int,
        skip_frame: int = 1,
        size: tuple[int, int] = (128, 128),
        previous_action: bool = False,
    ) -> None:
        for name, value in (("win_len", win_len), ("skip_frame", skip_frame)):
            if value < 1:
                raise ValueError(broken_rule(name, value, "must be an integer, at least 1"))
        if not is_dataset(Path(folder)):
            raise RecordingError(f"{str(folder)!r} is no dataset of MineStudio's.")
        self._data = dataset_at(Path(folder).resolve(), anew=True)
        self._length, self._skip, self._size = win_len, skip_frame, size
        self._previous = previous_action
        self._items = [
            (episode, start)
            for episode, frames in self._data.episodes.items()
            if self._data.is_informed(episode) or not self._data.has_infos
            for start in range(0, frames, win_len)
        ]

    def __len__(self) -> int:
        """Number of windows."""
        return len(self._items)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Read one window.

        Returns:
            With T = `win_len`: `image`, (T, H, W, 3) uint8; `env_action`, key -> (T, ...);
            `agent_action`, `buttons` and `camera` -> (T, 1) int64; if wanted, both with `prev` in
            their names; `meta_info`, name -> T values, if the dataset has infos; for each, a mask,
            (T,) uint8, that is 0 in padding; `mask`, that of the actions; `text`, `timestamp`,
            `episode` and `progress`.

        Raises:
            RecordingError: A chunk is missing or damaged.
        """
        episode, start = self._items[index]
        window: dict[str, Any] = self._image(episode, start)
        window |= self._action(episode, start)
        if self._data.has_infos:
            window |= self._infos(episode, start)
        number, count = start // self._length, -(-self._data.episodes[episode] // self._length)
        return {
            **window,
            "mask": window["action_mask"],
            "text": "raw",
            "timestamp": np.arange(start, start + self._length, self._skip),
            "episode": episode,
            "progress": f"{number}/{count}",
        }

    def _span(self, episode: str, start: int, bias: int = 0) -> _Span:
        start, length = start - bias, self._length + bias
        stop = min(start + length * self._skip, self._data.episodes[episode])
        return _Span(max(start, 0), stop, max(-start, 0), length)

    def _image(self, episode: str, start: int) -> dict[str, Any]:
        span = self._span(episode, start)
        # Of frames that are skipped, none is scaled or kept.
        pictures = self._data.pictures(episode, span.start, span.stop, self._size, self._skip)
        count = len(range(span.start, span.stop, self._skip))
        after, mask = _padding(count, span)
        end = span.left + count
        frames = filled(pictures, end + after, span.left, end, episode)
        return {IMAGE: frames, f"{IMAGE}_mask": mask}

    def _action(self, episode: str, start: int) -> dict[str, Any]:
        span = self._span(episode, start, bias=int(self._previous))
        chunks = list(self._data.decoded(ACTION, episode, span.start, span.stop))
        offset = span.start - self._data.first_of(ACTION, episode, span.start)
        rows = slice(offset, offset + span.stop - span.start, self._skip)
        merged = {key: np.concatenate([chunk[key] for chunk in chunks]) for key in chunks[0]}
        padded = {key: _padded(column[rows], span) for key, column in merged.items()}
        action = {key: column for key, (column, _) in padded.items()}
        if not self._previous:
            mask = padded["attack"][1]
            return {"env_action": action, "agent_action": _agent(action), "action_mask": mask}
        now = {key: column[1:] for key, column in action.items()}
        before = {key: column[:-1] for key, column in action.items()}
        return {
            "env_action": now,
            "env_prev_action": before,
            "agent_action": _agent(now),
            "agent_prev_action": _agent(before),
            "action_mask": np.ones(len(now["attack"]), np.uint8),
        }

    def _infos(self, episode: str, start: int) -> dict[str, Any]:
        span = self._span(episode, start)
        # What an info lacks is left out, as in MineStudio, and moves what follows forward.
        merged: dict[str, list[Any]] = defaultdict(list)
        for chunk in self._data.decoded(META_INFO, episode, span.start, span.stop):
            for info in chunk:
                for name, value in info.items():
                    merged[name].append(value)
        offset = span.start - self._data.first_of(META_INFO, episode, span.start)
        rows = slice(offset, offset + span.stop - span.start, self._skip)
        values = {name: column[rows] for name, column in merged.items()}
        after, mask = _padding(len(values[name]) if values else 0, span)
        values = {name: [*column, *[None] * after] for name, column in values.items()}
        return {META_INFO: values, f"{META_INFO}_mask": mask}


def _padding(rows: int, span: _Span) -> tuple[int, _Mask]:
    """Return the number of rows after `rows` rows, and the mask.

    Where frames are skipped, MineStudio's mask counts them, so that it is longer than the window.
    """
    mask = np.ones(span.stop - span.start, np.uint8)
    if span.left:
        mask = _runs((0, span.left), (1, rows))
    after = max(0, span.length - len(mask))
    whole = _runs((1, span.left + rows), (0, after))
    return after, np.concatenate([mask, whole[len(mask) :]]) if after else mask


def _runs(*runs: tuple[int, int]) -> _Mask:
    """Return numbers in a row, each as often as it is given."""
    return np.concatenate([np.full(times, number, np.uint8) for number, times in runs])


def _padded(rows: NDArray, span: _Span) -> tuple[NDArray, _Mask]:
    """Return rows with padding, which MineStudio makes of bytes, and the mask."""
    after, mask = _padding(len(rows), span)
    before, behind = (np.zeros((n, *rows.shape[1:]), np.uint8) for n in (span.left, after))
    return np.concatenate([before, rows, behind]) if span.left or after else rows, mask


def _agent(action: dict[str, NDArray]) -> dict[str, NDArray[np.int64]]:
    rows = len(action["camera"])
    keys = np.stack([action.get(key, np.zeros(rows)) for key in KEYS], 1).astype(np.uint8)
    tokens = tokens_of(KEYS, keys, action["camera"])
    return {
        name: column[:, None] for name, column in zip(("buttons", "camera"), tokens, strict=True)
    }
