"""Cutting recorded episodes into windows: steps to imitate, preceded by burn-in frames.

VPT has a memory, so its action in step t depends on the frames before it. Every window therefore
begins with `burn_in` frames that only rebuild the memory. No state is carried from window to
window, so windows can be shuffled and distributed among learners.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import compress, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.demonstrations.minestudio_reader import PREFIX, SUFFIX, MineStudioRecording
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import InvalidOptionsError, RecordingError, did_you_mean
from rllib_minestudio.foundation.buttons import NUM_BUTTONS
from rllib_minestudio.foundation.options import broken_rule
from rllib_minestudio.recordings import Recording, find_recordings
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


def windows(recording: RecordedEpisode, options: WindowOptions) -> Iterator[Window]:
    """Cut one episode into windows, decoding it once and holding one window in memory.

    Args:
        recording: The episode. Keys and degrees are converted to the nearest tokens.
        options: How to cut.

    Raises:
        RecordingError: The episode is damaged, has an overlay on its frames, or lacks a part of the
            observations.
    """
    mapper = ActionMapper()
    tokens = _tokens(recording, mapper)
    parts = _parts(recording, options.observation_names)
    _check_overlay(recording)
    kept = _short_runs(mapper.is_null(*tokens), options.max_null_run)
    frames = compress(recording.frames(options.size, stop=len(recording)), kept)
    step_weights = np.arange(len(recording)) >= imitated_from(recording)
    tokens, step_weights = tokens[:, kept], step_weights[kept]
    parts = {name: part[kept] for name, part in parts.items()}
    steps = len(step_weights)
    burn_in, length = options.burn_in, options.burn_in + options.length
    before: list[NDArray[np.uint8]] = []
    for start in range(0, steps, options.length):
        present = list(islice(frames, options.length))
        begin, end = burn_in - len(before), burn_in + len(present)
        shown = [*before, *present]
        image = np.zeros((length, *present[0].shape), np.uint8)
        image[begin:end] = shown
        rows = slice(start - len(before), start + len(present))
        columns = np.zeros((len(tokens), length), np.int64)
        columns[:, begin:end] = tokens[:, rows]
        observations = {}
        for name, part in parts.items():
            padded = observations[name] = np.zeros((length, *part.shape[1:]), part.dtype)
            padded[begin:end] = part[rows]
        first = np.zeros(length, np.bool_)
        first[begin] = len(before) == start
        weight = np.zeros(length, np.float32)
        weight[burn_in:end] = step_weights[start : start + len(present)]
        yield Window(image, columns[0], columns[1], first, weight, observations)
        before = shown[max(0, len(shown) - burn_in) :]


def stream(
    recordings: Sequence[RecordedEpisode], options: WindowOptions, *, seed: int, shuffle_among: int
) -> Iterator[Window]:
    """Yield windows of many episodes endlessly, in random order.

    Each epoch yields every window once. Memory holds `shuffle_among` windows and one episode that
    is being decoded.

    Args:
        recordings: Episodes, of which at least one has a step.
        options: How to cut.
        seed: Seed of the order.
        shuffle_among: Number of windows from which each one is drawn.
    """
    random = np.random.default_rng(seed)
    while True:
        order = random.permutation(len(recordings))
        epoch = (window for i in order for window in windows(recordings[i], options))
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


def _tokens(recording: RecordedEpisode, mapper: ActionMapper) -> NDArray[np.int64]:
    """Return the tokens `buttons` and `camera`, (2, N)."""
    columns, keys = recording.steps, recording.meta.get("keys")
    if keys is None:
        tokens = np.stack([columns["buttons"], columns["camera"]]).astype(np.int64)
    else:
        rows = zip(columns["keys"].tolist(), columns["degrees"], strict=True)
        try:
            pairs = [
                mapper.from_env({**dict(zip(keys, row, strict=True)), "camera": degrees})
                for row, degrees in rows
            ]
        except (KeyError, ValueError) as error:
            raise RecordingError(
                f"{str(recording.path)!r} has keys that are none of Minecraft's: {error}."
            ) from error
        tokens = np.array(pairs, np.int64).reshape(-1, 2).T
    limits = (NUM_BUTTONS, mapper.n_camera_tokens)
    for name, column, limit in zip(("buttons", "camera"), tokens, limits, strict=True):
        wrong = column[(column < 0) | (column >= limit)]
        if len(wrong):
            raise RecordingError(
                f"{str(recording.path)!r} has a {name} token {wrong[0]}, but VPT's are from 0 to "
                f"{limit - 1}: it was recorded with another camera_config, or is damaged."
            )
    return tokens


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


# ------------------------------------------------- recorded episodes, in our format or MineStudio's

TAKEOVER = "takeover"
"""Key in `meta`: the number of steps that a novice played, which are not to be imitated."""
IMITATED_FROM = "imitated_from"
"""Key in `meta`: the first step to imitate, at `TAKEOVER` or later."""


class RecordedEpisode(Protocol):
    """An episode that can be cut into windows: `Recording` or `MineStudioRecording`."""

    @property
    def path(self) -> Path:
        """The path of the recording."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """Its description; `keys`, `video`, `TAKEOVER` and `IMITATED_FROM` are used."""

    def __len__(self) -> int:
        """Return N, the number of steps."""

    @property
    def steps(self) -> dict[str, NDArray]:
        """The actions, N rows each."""

    @property
    def observations(self) -> Mapping[str, NDArray]:
        """Observations before each action, without the frame: name -> N rows."""

    def frames(
        self, size: tuple[int, int] | None = None, stop: int | None = None
    ) -> Iterator[Frame]:
        """Yield the N + 1 frames, or the first `stop`, scaled to `size`, (width, height)."""


def find_episodes(folder: str | Path) -> list[Path]:
    """Return the paths of all recorded episodes in a folder and below, for `open_episode`.

    Our own recordings come first; each kind is sorted.

    Raises:
        RecordingError: There is no such folder, or a recording cannot be opened.
    """
    ours = [recording.path for recording in find_recordings(folder)]
    theirs = [
        path
        for path in sorted(Path(folder).rglob(f"{PREFIX}*{SUFFIX}"))
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    return ours + theirs


_OTHER_FORMATS = {
    ".jsonl": "contractor recordings as OpenAI published them",
    ".mdb": "an LMDB dataset of MineStudio's",
    ".lmdb": "an LMDB dataset of MineStudio's",
}
"""Suffix -> what a folder with such files probably holds."""
_MOST_FILES = 10_000
_MOST_SUFFIXES = 4


def contents(folder: str | Path) -> str:
    """Return in words what a folder without a recorded episode holds instead."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    counts = Counter(path.suffix.lower() for path in islice(files, _MOST_FILES))
    if not counts:
        return f"{str(folder)!r} holds no files"
    found = ", ".join(
        f"{count:,} {suffix or 'other'}" for suffix, count in counts.most_common(_MOST_SUFFIXES)
    )
    known = [name for suffix, name in _OTHER_FORMATS.items() if counts[suffix]]
    guess = f", perhaps {known[0]}, which is not read" if known else ""
    return f"{str(folder)!r} holds no recorded episode (files: {found}{guess})"


def open_episode(path: str | Path) -> RecordedEpisode:
    """Open a recorded episode whose path `find_episodes` returned.

    Raises:
        RecordingError: It is not a recorded episode.
    """
    path = Path(path)
    return MineStudioRecording(path) if path.suffix == SUFFIX else Recording(path)


def imitated_from(recording: RecordedEpisode) -> int:
    """Return the first step to imitate."""
    return int(recording.meta.get(IMITATED_FROM, recording.meta.get(TAKEOVER, 0)))
