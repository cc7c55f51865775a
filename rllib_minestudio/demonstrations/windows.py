"""Cuts recorded episodes into windows: so many steps to imitate, and what came before them.

VPT remembers. What it is to do in step t depends on the frames before it, so every window begins
with `burn_in` frames that only rebuild the memory; nothing else has to be carried from window to
window, and windows can be shuffled and shared out among learners.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import compress, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.demonstrations.minestudio import PREFIX, SUFFIX, MineStudioRecording
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import InvalidOptionsError, RecordingError, did_you_mean
from rllib_minestudio.foundation.buttons import NUM_BUTTONS
from rllib_minestudio.foundation.options import broken_rule, is_integer
from rllib_minestudio.recordings import Recording, find_recordings
from rllib_minestudio.recordings.video import Frame

Item = TypeVar("Item")


@dataclass(frozen=True)
class WindowOptions:
    """How episodes are cut.

    Attributes:
        length: Steps to imitate.
        burn_in: Frames before them. With the network's memory length, its first layer remembers
            exactly what it would have remembered when playing; deeper ones nearly.
        size: (width, height) that frames are scaled to; None keeps the recorded size.
        observation_names: Parts of observations besides the frame that windows are to have, as
            `rllib_minestudio.foundation.observations` names them, such as `task_text`.
        max_null_run: Of consecutive null actions (see `ActionMapper.is_null`), the first so many
            are kept; the others are left out together with their frames. None keeps all.

    Raises:
        InvalidOptionsError: A part is called like a field of `Window`.
    """

    length: int
    burn_in: int
    size: tuple[int, int] | None = None
    observation_names: tuple[str, ...] = ()
    max_null_run: int | None = None

    def __post_init__(self) -> None:
        """Check the names: a batch holds fields and parts side by side."""
        taken = [option.name for option in fields(Window)]
        for name in self.observation_names:
            if name in taken:
                rule = f"must not be one of {', '.join(taken)}, which every window has"
                raise InvalidOptionsError(broken_rule("observation_names", name, rule))


@dataclass(frozen=True, eq=False)
class Window:
    """`burn_in + length` consecutive frames of one episode, with padding where it has none.

    Padding before the episode has nothing to do with it: `first` cuts it off. Padding after it has
    weight 0 and can influence nothing before it.

    Attributes:
        image: (T, H, W, 3) uint8, what was seen.
        buttons: (T,) int64, the token of what was then done.
        camera: (T,) int64.
        first: (T,) bool, True where the episode begins.
        weight: (T,) float32: 1 for a step to imitate; 0 in burn-in, in padding, and before the step
            from which on the episode is to be imitated.
        observations: Name -> (T, ...), what was observed besides `image`; zeros in padding.
    """

    image: NDArray[np.uint8]
    buttons: NDArray[np.int64]
    camera: NDArray[np.int64]
    first: NDArray[np.bool_]
    weight: NDArray[np.float32]
    observations: Mapping[str, NDArray] = field(default_factory=dict)


def windows(recording: RecordedEpisode, options: WindowOptions) -> Iterator[Window]:
    """Cut one episode, decoding it once and holding one window of it at a time.

    Args:
        recording: The episode. If it was recorded as keys and degrees, these become the nearest
            tokens.
        options: How to cut.

    Raises:
        RecordingError: It is damaged, its frames are not what an agent saw, or it lacks a part of
            the observations.
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
    """Yield windows of many episodes for ever, in random order.

    Every window comes once before any comes again. Memory holds `shuffle_among` windows and one
    episode being decoded.

    Args:
        recordings: At least one with at least one step.
        options: How to cut.
        seed: Decides the order.
        shuffle_among: From how many windows each is drawn.
    """
    random = np.random.default_rng(seed)
    while True:
        order = random.permutation(len(recordings))
        epoch = (window for i in order for window in windows(recordings[i], options))
        yield from shuffled(epoch, shuffle_among, random)


def shuffled(items: Iterable[Item], among: int, random: np.random.Generator) -> Iterator[Item]:
    """Yield all items in random order, holding `among` of them from which each is drawn."""
    waiting: list[Item] = []
    for item in items:
        waiting.append(item)
        if len(waiting) > among:
            yield waiting.pop(int(random.integers(len(waiting))))
    for i in random.permutation(len(waiting)):
        yield waiting[i]


def stack(batch: Sequence[Window]) -> dict[str, NDArray]:
    """Stack windows of equal shape: all that they hold, with a leading batch axis.

    Args:
        batch: Windows that were cut with the same options.

    Returns:
        The arrays under the names of the fields of `Window`; those in `observations` under their
        own.
    """
    rows = [{**vars(window), **window.observations} for window in batch]
    return {
        name: np.stack([row[name] for row in rows]) for name in rows[0] if name != "observations"
    }


def _parts(recording: RecordedEpisode, names: Sequence[str]) -> dict[str, NDArray]:
    """Return parts of the observations of every step, N rows each.

    Raises:
        RecordingError: One was not recorded, or is damaged.
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
    """Return buttons and camera of every step, (2, N)."""
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
    """Say which steps are left if no more than `longest` null ones follow each other."""
    if longest is None:
        return np.ones_like(null)
    steps = np.arange(len(null))
    before = np.maximum.accumulate(np.where(null, -1, steps))  # the last other step so far, or -1
    return ~null | (steps - before <= longest)


def _check_overlay(recording: RecordedEpisode) -> None:
    """Refuse what no agent sees when it plays.

    Raises:
        RecordingError: Text was written over the frames.
    """
    if (recording.meta.get("video") or {}).get("overlay"):
        raise RecordingError(
            f"{str(recording.path)!r} shows text over its frames, which an agent does not see: "
            "record demonstrations without overlay."
        )


# ---------------------------------------------------------------------------- episodes side by side
# Batches in which every window continues the one at its place before.
#
# The memory that a policy has after one batch is then what it has before the next, as when it
# plays, however long an episode is. What has to be in memory is an episode per lane.


def whole_episodes(windows: Iterable[tuple[Hashable, bool, Item]]) -> Iterator[list[Item]]:
    """Put the windows of several episodes, which may arrive in turns, together again.

    Args:
        windows: Which episode one is of, whether it is the last of that, and the window; those of
            one episode in their order.

    Yields:
        An episode's windows, when its last one has arrived.
    """
    arriving: dict[Hashable, list[Item]] = {}
    for episode, last, window in windows:
        arriving.setdefault(episode, []).append(window)
        if last:
            yield arriving.pop(episode)


def side_by_side(
    episodes: Iterable[list[Item]], lanes: int, random: np.random.Generator | None = None
) -> Iterator[list[Item | None]]:
    """Yield the next window of each lane, in which one episode follows the other.

    Args:
        episodes: Those that lanes take the next one from when they have come to an end.
        lanes: How many.
        random: Where in its first episode each lane begins: episodes of one length would otherwise
            begin together for ever. None begins at their beginning.

    Yields:
        A window per lane; None for a lane for which no episode is left, until none has one.
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


# --------------------------------------------------- finds recorded episodes, whoever recorded them

TAKEOVER = "takeover"
"""Key of what was recorded: how many steps a novice played, which are not to be imitated."""
IMITATED_FROM = "imitated_from"
"""Key of what was recorded: the first step to imitate, at `TAKEOVER` or later."""


class RecordedEpisode(Protocol):
    """What windows are cut from: `Recording`, or `MineStudioRecording`."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """What was recorded; `keys`, `video`, `TAKEOVER` and `IMITATED_FROM` matter."""

    def __len__(self) -> int:
        """Number of steps, N."""

    @property
    def steps(self) -> dict[str, NDArray]:
        """The actions, N rows each."""

    @property
    def observations(self) -> Mapping[str, NDArray]:
        """What was observed besides the frame before each action: name -> N rows."""

    def frames(
        self, size: tuple[int, int] | None = None, stop: int | None = None
    ) -> Iterator[Frame]:
        """The N + 1 frames, or the first `stop` of them, scaled to (width, height)."""


def find_episodes(folder: str | Path) -> list[Path]:
    """Return the paths of all recorded episodes in a folder and below, sorted; for `open_episode`.

    Raises:
        RecordingError: There is no such folder, or one of the recordings cannot be opened.
    """
    ours = [recording.path for recording in find_recordings(folder)]
    theirs = [
        path
        for path in sorted(Path(folder).rglob(f"{PREFIX}*{SUFFIX}"))
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    return ours + theirs


def open_episode(path: str | Path) -> RecordedEpisode:
    """Open what `find_episodes` found.

    Raises:
        RecordingError: It is no recorded episode.
    """
    path = Path(path)
    return MineStudioRecording(path) if path.suffix == SUFFIX else Recording(path)


def imitated_from(recording: RecordedEpisode) -> int:
    """Return the first step that is to be imitated.

    Raises:
        RecordingError: The recording is damaged: that is no step.
    """
    step = recording.meta.get(IMITATED_FROM, recording.meta.get(TAKEOVER, 0))
    if not is_integer(step) or step < 0:
        raise RecordingError(
            f"{str(recording.path)!r} is damaged: it is to be imitated from step {step!r} on, "
            "which must be an integer of at least 0."
        )
    return int(step)
