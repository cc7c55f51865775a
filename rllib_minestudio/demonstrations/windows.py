"""Cutting recorded episodes into windows: steps to imitate, preceded by burn-in frames.

VPT has a memory, so its action in step t depends on the frames before it. Every window therefore
begins with `burn_in` frames that only rebuild the memory. No state is carried from window to
window, so windows can be shuffled and distributed among learners.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import InvalidOptionsError, RecordingError, did_you_mean
from rllib_minestudio.foundation.names import KEYS, NUM_BUTTONS
from rllib_minestudio.foundation.options import broken_rule
from rllib_minestudio.recordings.episodes import RecordedEpisode
from rllib_minestudio.recordings.minestudio_dataset import (
    ACTION,
    IMAGE,
    META_INFO,
    dataset_at,
    is_dataset,
)
from rllib_minestudio.recordings.video import Frame

Item = TypeVar("Item")


@dataclass(frozen=True)
class WindowOptions:
    """How episodes are cut.

    Attributes:
        length: Number of steps to imitate.
        burn_in: Number of frames before them. If it is the network's memory length, the first
            layer's memory is exactly the same as when playing; that of deeper layers nearly.
        size: (width, height) to which frames are scaled; None keeps the recorded size.
        observation_names: Parts of observations besides the frame to include, named as in
            `rllib_minestudio.foundation.observations`, such as `task_text`.
        max_null_run: Number of null actions (see `ActionMapper.is_null`) to keep at the start of
            each run of them; the others are left out with their frames. None keeps all.

    Raises:
        InvalidOptionsError: A part has the name of a field of `Window`.
    """

    length: int
    burn_in: int
    size: tuple[int, int] | None = None
    observation_names: tuple[str, ...] = ()
    max_null_run: int | None = None

    def __post_init__(self) -> None:
        # A batch holds fields and parts side by side.
        taken = [option.name for option in fields(Window)]
        for name in self.observation_names:
            if name in taken:
                rule = f"must not be one of {', '.join(taken)}, which every window has"
                raise InvalidOptionsError(broken_rule("observation_names", name, rule))


@dataclass(frozen=True, eq=False)
class Window:
    """`burn_in + length` consecutive frames of one episode, with padding before and after it.

    Padding before the episode has no effect, because `first` resets the memory. Padding after it
    has weight 0 and cannot influence earlier steps.

    Attributes:
        image: (T, H, W, 3) uint8, the frames.
        buttons: (T,) int64, the button token of each frame's action.
        camera: (T,) int64, the camera token.
        first: (T,) bool, True where the episode begins.
        weight: (T,) float32: 1 for steps to imitate; 0 in burn-in, in padding, and before the first
            step of the episode that is to be imitated.
        observations: Name -> (T, ...), observations besides `image`; zeros in padding.
    """

    image: NDArray[np.uint8]
    buttons: NDArray[np.int64]
    camera: NDArray[np.int64]
    first: NDArray[np.bool_]
    weight: NDArray[np.float32]
    observations: Mapping[str, NDArray] = field(default_factory=dict)


class Stretch(NamedTuple):
    """Consecutive steps of an episode, which are decoded together.

    Attributes:
        path: Path of the episode.
        start: Its first step.
        stop: The step after its last; None: the episode's end.
    """

    path: Path
    start: int = 0
    stop: int | None = None


def stretches(lengths: Mapping[Path, int], steps: int) -> list[Stretch]:
    """Cut episodes into stretches of as many steps; the last of an episode may have fewer.

    Args:
        lengths: Path of an episode -> its number of steps.
        steps: Steps per stretch.
    """
    return [
        Stretch(path, start, min(start + steps, length))
        for path, length in lengths.items()
        for start in range(0, length, steps)
    ]


def windows(
    recording: RecordedEpisode, options: WindowOptions, start: int = 0, stop: int | None = None
) -> Iterator[Window]:
    """Cut an episode, or a stretch of it, into windows, holding one window in memory.

    Each frame is decoded once, beginning with the `burn_in` frames before the stretch.

    Args:
        recording: The episode. Keys and degrees are converted to the nearest tokens.
        options: How to cut.
        start: First step of the stretch.
        stop: Step after its last; None: the episode's end.

    Raises:
        RecordingError: The episode is damaged, has an overlay on its frames, or lacks a part of the
            observations.
    """
    tokens = action_tokens(recording)
    parts = _parts(recording, options.observation_names)
    _check_overlay(recording)
    kept = np.flatnonzero(_short_runs(ActionMapper().is_null(*tokens), options.max_null_run))
    # From here on, steps are numbered among those that are kept.
    ends = len(tokens[0]) if stop is None else stop
    first_step, end_step = np.searchsorted(kept, [start, ends])
    if first_step == end_step:
        return
    step_weights = kept >= imitated_from(recording)
    tokens = tokens[:, kept]
    parts = {name: part[kept] for name, part in parts.items()}
    burn_in, length = options.burn_in, options.burn_in + options.length
    earliest = max(0, first_step - burn_in)
    frames = _frames_of(recording, options.size, kept[earliest:end_step])
    before = list(islice(frames, first_step - earliest))
    for step in range(first_step, end_step, options.length):
        present = min(options.length, end_step - step)
        begin, end = burn_in - len(before), burn_in + present
        image = filled(chain(before, frames), length, begin, end, str(recording.path))
        rows = slice(step - len(before), step + present)
        columns = np.zeros((len(tokens), length), np.int64)
        columns[:, begin:end] = tokens[:, rows]
        observations = {}
        for name, part in parts.items():
            padded = observations[name] = np.zeros((length, *part.shape[1:]), part.dtype)
            padded[begin:end] = part[rows]
        first = np.zeros(length, np.bool_)
        first[begin] = len(before) == step
        weight = np.zeros(length, np.float32)
        weight[burn_in:end] = step_weights[step : step + present]
        before = list(image[max(begin, end - burn_in) : end].copy())
        yield Window(image, columns[0], columns[1], first, weight, observations)


def filled(
    frames: Iterator[Frame], length: int, begin: int, end: int, episode: str
) -> NDArray[np.uint8]:
    """Return (length, H, W, 3) with frames in the rows from `begin` to `end`, and zeros elsewhere.

    Frames are copied as they arrive. Collecting them first would take as long as scaling them, as
    the system zeroes the pages of new memory.

    Raises:
        RecordingError: There are fewer; the message names the episode.
    """
    image: NDArray[np.uint8] | None = None
    for row in range(begin, end):
        frame = next(frames, None)
        if frame is None:
            raise RecordingError(
                f"The video of {episode!r} ends before its actions do: {row - begin} of "
                f"{end - begin} frames of a window can be read."
            )
        if image is None:
            image = np.zeros((length, *frame.shape), np.uint8)
        image[row] = frame
    assert image is not None
    return image


def _frames_of(
    recording: RecordedEpisode, size: tuple[int, int] | None, steps: NDArray[np.int64]
) -> Iterator[Frame]:
    """Yield the frames before some steps, which ascend."""
    start, stop = int(steps[0]), int(steps[-1]) + 1
    is_wanted = np.isin(np.arange(start, stop), steps)
    return compress(recording.frames(size, stop=stop, start=start), is_wanted)


def stream(
    recordings: Sequence[RecordedEpisode],
    options: WindowOptions,
    *,
    seed: int,
    shuffle_among: int,
    windows_per_read: int = 8,
) -> Iterator[Window]:
    """Yield windows of many episodes endlessly, in random order.

    Each epoch yields every window once. Memory holds `shuffle_among` windows and one that is being
    decoded.

    Args:
        recordings: Episodes, of which at least one has a step.
        options: How to cut.
        seed: Seed of the order.
        shuffle_among: Number of windows from which each one is drawn.
        windows_per_read: Number of consecutive windows that are decoded together.
    """
    random = np.random.default_rng(seed)
    known = {recording.path: recording for recording in recordings}
    lengths = {path: len(recording) for path, recording in known.items()}
    pieces = stretches(lengths, windows_per_read * options.length)
    while True:
        order = [pieces[i] for i in random.permutation(len(pieces))]
        epoch = (
            window
            for path, start, stop in order
            for window in windows(known[path], options, start, stop)
        )
        yield from shuffled(epoch, shuffle_among, random)


def shuffled(items: Iterable[Item], among: int, random: np.random.Generator) -> Iterator[Item]:
    """Yield all items in random order, drawing each from a buffer of `among` items."""
    waiting: list[Item] = []
    for item in items:
        waiting.append(item)
        if len(waiting) > among:
            yield waiting.pop(int(random.integers(len(waiting))))
    for i in random.permutation(len(waiting)):
        yield waiting[i]


def stack(batch: Sequence[Window]) -> dict[str, NDArray]:
    """Stack all arrays of windows, with a leading batch axis.

    Args:
        batch: Windows that were cut with the same options.

    Returns:
        The fields of `Window` by name, and the parts in `observations` by their own names.
    """
    rows = [{**vars(window), **window.observations} for window in batch]
    return {
        name: np.stack([row[name] for row in rows]) for name in rows[0] if name != "observations"
    }


def _parts(recording: RecordedEpisode, names: Sequence[str]) -> dict[str, NDArray]:
    """Return parts of the observations, N rows each.

    Raises:
        RecordingError: A part was not recorded, or is damaged.
    """
    recorded = recording.observations
    missing = [name for name in names if name not in recorded]
    if missing:
        raise RecordingError(
            f"{str(recording.path)!r} has no observations {missing[0]!r}, which the policy reads"
            f"{did_you_mean(missing[0], recorded)}; besides frames it has "
            f"{', '.join(recorded) or 'none'}. Record again with the callback that adds them, or "
            "leave the recording out."
        )
    return {name: recorded[name] for name in names}


def action_tokens(recording: RecordedEpisode) -> NDArray[np.int64]:
    """Return the tokens `buttons` and `camera` of an episode, (2, N), the nearest to its actions.

    Raises:
        RecordingError: The episode is damaged, or its actions are none of VPT's.
    """
    columns, keys = recording.steps, recording.meta.get("keys")
    if keys is None:
        tokens = np.stack([columns["buttons"], columns["camera"]]).astype(np.int64)
    else:
        try:
            tokens = tokens_of(keys, columns["keys"], columns["degrees"])
        except (KeyError, ValueError) as error:
            raise RecordingError(
                f"{str(recording.path)!r} has keys that are none of Minecraft's: {error}."
            ) from error
    limits = (NUM_BUTTONS, ActionMapper().n_camera_tokens)
    for name, column, limit in zip(("buttons", "camera"), tokens, limits, strict=True):
        wrong = column[(column < 0) | (column >= limit)]
        if len(wrong):
            raise RecordingError(
                f"{str(recording.path)!r} has a {name} token {wrong[0]}, but VPT's are from 0 to "
                f"{limit - 1}: it was recorded with another camera_config, or is damaged."
            )
    return tokens


def tokens_of(keys: Sequence[str], pressed: NDArray, degrees: NDArray) -> NDArray[np.int64]:
    """Return the tokens `buttons` and `camera` nearest to N actions, (2, N).

    Args:
        keys: K names of keys.
        pressed: (N, K) uint8, 0 or 1.
        degrees: (N, 2), pitch and yaw.
    """
    names, rows = tuple(keys), zip(pressed, degrees.tolist(), strict=True)
    pairs = [_pair(names, bytes(row), *turned) for row, turned in rows]
    return np.array(pairs, np.int64).reshape(-1, 2).T


@lru_cache(maxsize=2**16)
def _pair(keys: tuple[str, ...], pressed: bytes, pitch: float, yaw: float) -> tuple[int, int]:
    """Return the tokens of an action; people's repeat themselves."""
    return ActionMapper().from_env(
        {**dict(zip(keys, pressed, strict=True)), "camera": (pitch, yaw)}
    )


def _short_runs(null: NDArray[np.bool_], longest: int | None) -> NDArray[np.bool_]:
    """Return which steps to keep so that no more than `longest` null ones are consecutive."""
    if longest is None:
        return np.ones_like(null)
    steps = np.arange(len(null))
    before = np.maximum.accumulate(np.where(null, -1, steps))  # last non-null step so far, or -1
    return ~null | (steps - before <= longest)


def _check_overlay(recording: RecordedEpisode) -> None:
    """Refuse recordings with an overlay, which an agent does not see when it plays."""
    if (recording.meta.get("video") or {}).get("overlay"):
        raise RecordingError(
            f"{str(recording.path)!r} shows text over its frames, which an agent does not see: "
            "record demonstrations without overlay."
        )


# ----------------------------------------------------------------------- episodes in parallel lanes
# In these batches, every window continues the one at the same index of the previous batch. The
# policy's memory after one batch is therefore the right one for the next, as when it plays, however
# long an episode is. One episode per lane has to be in memory.


def whole_episodes(
    windows: Iterable[tuple[Hashable, int, bool, Item]],
) -> Iterator[list[Item]]:
    """Group windows by episode, whatever their order: on a busy machine, Ray Data keeps none.

    Args:
        windows: Tuples of the episode's key, the window's number in it, whether it is the last
            one, and the window.

    Yields:
        All windows of an episode, in order, once all of them have arrived.
    """
    arriving: dict[Hashable, dict[int, Item]] = {}
    counts: dict[Hashable, int] = {}
    for episode, number, last, window in windows:
        parts = arriving.setdefault(episode, {})
        parts[number] = window
        if last:
            counts[episode] = number + 1
        if len(parts) == counts.get(episode):
            del arriving[episode], counts[episode]
            yield [parts[i] for i in range(len(parts))]


def side_by_side(
    episodes: Iterable[list[Item]], lanes: int, random: np.random.Generator | None = None
) -> Iterator[list[Item | None]]:
    """Yield the next window of each lane; in a lane, one episode follows another.

    Args:
        episodes: Episodes, as lists of windows; a lane that has finished one takes the next.
        lanes: Number of lanes.
        random: Draws where each lane begins in its first episode, so that episodes of equal length
            do not always begin together. None: at the beginning.

    Yields:
        A window per lane, or None for a lane without an episode; until all lanes are empty.
    """
    source = iter(episodes)
    waiting: list[deque[Item]] = [deque() for _ in range(lanes)]
    for lane in waiting:
        first = next(source, [])
        skipped = int(random.integers(len(first))) if random is not None and first else 0
        lane.extend(first[skipped:])
    while any(waiting):
        yield [lane.popleft() if lane else None for lane in waiting]
        for lane in waiting:
            if not lane:
                lane.extend(next(source, []))


TAKEOVER = "takeover"
"""Key in `meta`: the number of steps that a novice played, which are not to be imitated."""
IMITATED_FROM = "imitated_from"
"""Key in `meta`: the first step to imitate, at `TAKEOVER` or later."""


def imitated_from(recording: RecordedEpisode) -> int:
    """Return the first step to imitate."""
    return int(recording.meta.get(IMITATED_FROM, recording.meta.get(TAKEOVER, 0)))


# -------------- windows of MineStudio's datasets by its own conventions, as `RawDataset` makes them
# For programs that were written for MineStudio's data pipeline, without its packages, its
# unpickling and its threads. Cloning does not need them: it cuts windows of its own
# (`windows.py`).
#
# Source: MineStudio 1.1.6, data/minecraft/dataset_raw.py (`RawDataset`), core.py (`read_frames`)
# and callbacks/ (`do_merge`, `do_slice`, `do_pad`, `do_postprocess`).

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
        self._data = dataset_at(Path(folder).resolve(), refresh=True)
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
