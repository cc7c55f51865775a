"""Contractor recordings, `NAME.mp4` with `NAME.jsonl`, as OpenAI published them for VPT and BASALT.

Each line of the text is one tick, 1/20 s: what the player's mouse and keyboard did, and the state
of the game before. Line t belongs to frame t; the video may have one frame more.

How they are read follows OpenAI's Video-Pre-Training, where each rule has its source:

| Rule | Source |
|---|---|
| keys of the keyboard and the mouse | `KEYBOARD_BUTTON_MAPPING` in run_inverse_dynamics_model.py |
| escape closes a screen: it counts as the inventory's key while one is open | comment there |
| mouse to degrees: `dx`, `dy` * 360 / 2400 | `CAMERA_SCALER` there |
| an attack that is pressed in line 0 is stuck until the button is pressed again | data_loader.py |
| a change of the selected slot is a press of its key, as the wheel is not recorded | there |
| the cursor is drawn where `isGuiOpen`, at `x`, `y` * height / 720 | there |
| line t acts on frame t; lines without a frame, and frames without a line, are left out | there |
| frames are scaled as by OpenCV's INTER_LINEAR | `resize_image` in agent.py |
| null actions are dropped, judged by tokens (`max_null_run`) | comment in data_loader.py |

OpenAI's loader cuts the camera to whole degrees, because its array holds integers; here and in
MineStudio's converter it is exact. Its table of scales for the mouse in screens, by version, is
used by neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import av
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rllib_minestudio.errors import RecordingError
from rllib_minestudio.foundation.documents import Excerpt, ListOf, Name, parse_excerpt
from rllib_minestudio.foundation.files import SmallFileError, Unfinished
from rllib_minestudio.foundation.names import HOTBAR_KEYS, KEYS
from rllib_minestudio.foundation.recording_options import CONTRACTOR
from rllib_minestudio.recordings.layout import Layout, RecordedStep, Sight, to_json
from rllib_minestudio.recordings.video import (
    FRAMES_PER_SECOND,
    Frame,
    VideoFacts,
    VideoOptions,
    VideoWriter,
    read_facts,
    read_video,
)

LINES, VIDEO = ".jsonl", ".mp4"
VIDEO_FOLDER, LINES_FOLDER = "mp4", "jsonl"
"""MineStudio's converters expect videos and texts in folders of these names."""

DEGREES_PER_COUNT = 360 / 2400
"""Degrees that the view turns per unit of the mouse."""

WINDOW_HEIGHT = 720
"""Height of the window in whose pixels the cursor's position is told."""

MOST_LINES = 10_000_000

_KEY_OF = {
    **{f"key.keyboard.{slot}": key for slot, key in enumerate(HOTBAR_KEYS, 1)},
    "key.keyboard.w": "forward",
    "key.keyboard.s": "back",
    "key.keyboard.a": "left",
    "key.keyboard.d": "right",
    "key.keyboard.q": "drop",
    "key.keyboard.e": "inventory",
    "key.keyboard.space": "jump",
    "key.keyboard.left.shift": "sneak",
    "key.keyboard.left.control": "sprint",
}
_ESCAPE = "key.keyboard.escape"
_BUTTONS = {0: "attack", 1: "use"}
"""Number of a mouse button -> key."""
_COLUMN = {key: column for column, key in enumerate(KEYS)}

_VERSION = re.compile(r"\d{1,2}\.\d{1,2}")
"""The recorder's version: in OpenAI's lists of files, the name of the folder."""

_Number = Annotated[float, Field(ge=-1e6, le=1e6)]
_Buttons = ListOf[Annotated[int, Field(ge=0, le=100)]]


class MouseExcerpt(Excerpt):
    """The mouse in a tick: position and motion in pixels of the window, and its buttons."""

    x: _Number = 0.0
    y: _Number = 0.0
    dx: _Number
    dy: _Number
    buttons: _Buttons
    newButtons: _Buttons = Field([])


class KeyboardExcerpt(Excerpt):
    """The keyboard in a tick."""

    keys: ListOf[Name]


class LineExcerpt(Excerpt):
    """One line: what is read of it."""

    mouse: MouseExcerpt
    keyboard: KeyboardExcerpt
    hotbar: Annotated[int, Field(ge=0, le=8)]
    isGuiOpen: bool = False
    yaw: _Number | None = None
    pitch: _Number | None = None
    tick: Annotated[int, Field(ge=0, le=2**53)] | None = None


class _Ticks(NamedTuple):
    """The lines as columns of N rows.

    Attributes:
        keys: uint8 (N, K), in the order of `KEYS`.
        degrees: float32 (N, 2), pitch and yaw.
        cursor: float32 (N, 2), x and y in the recorder's window; NaN where no screen is open.
        view: float64 (N, 2), the player's pitch and yaw; NaN if not told.
        tick: int64 (N,), -1 if not told.
        problem: Why the lines end early, or None.
    """

    keys: NDArray[np.uint8]
    degrees: NDArray[np.float32]
    cursor: NDArray[np.float32]
    view: NDArray[np.float64]
    tick: NDArray[np.int64]
    problem: str | None


class ContractorRecording:
    """One contractor recording, as a `RecordedEpisode`.

    Attributes:
        path: The file of lines.
        name: NAME.
    """

    format: ClassVar[str] = CONTRACTOR

    def __init__(self, path: str | Path) -> None:
        """Read the video's header and count the lines.

        Args:
            path: `NAME.jsonl`, with `NAME.mp4` beside it, or in a folder `mp4` beside its folder.

        Raises:
            RecordingError: There is no video, or one of the two cannot be read.
        """
        self.path = Path(path)
        self.name = self.path.stem
        places = (self.path.parent, self.path.parents[1] / VIDEO_FOLDER)
        videos = [place / f"{self.name}{VIDEO}" for place in places]
        video = next((video for video in videos if video.is_file()), None)
        if video is None:
            raise RecordingError(f"{str(self.path)!r} has no {videos[0].name} beside it.")
        self._video = video
        try:
            self._facts: VideoFacts = read_facts(video)
        except (OSError, av.error.FFmpegError) as error:
            raise RecordingError(f"{str(video)!r} cannot be read: {error}.") from error
        self._lines = sum(1 for _ in self._read_lines())

    @property
    def meta(self) -> dict[str, Any]:
        """The entries `keys` and `video` of `Recording.meta`, and as `recorder` the version."""
        version = next((p.name for p in self.path.parents if _VERSION.fullmatch(p.name)), None)
        facts = self._facts
        video = {"width": facts.width, "height": facts.height, "fps": facts.fps}
        return {"keys": list(KEYS), "video": video, "recorder": version}

    def __len__(self) -> int:
        """N, the number of lines with a frame; once they are read, of those that could be."""
        if "_ticks" in self.__dict__:
            return len(self._ticks.tick)
        return min(self._lines, self._facts.frames)

    @cached_property
    def _ticks(self) -> _Ticks:
        return _columns(islice(self._read_lines(), len(self)), len(self))

    @property
    def steps(self) -> dict[str, NDArray]:
        """The actions: `keys`, (N, K) uint8, and `degrees`, (N, 2) float32.

        They end before the first line that is none; `problems` names it.
        """
        return {"keys": self._ticks.keys, "degrees": self._ticks.degrees}

    @property
    def observations(self) -> Mapping[str, NDArray]:
        """Empty: frames are all that was observed."""
        return {}

    def frames(
        self, size: tuple[int, int] | None = None, stop: int | None = None, start: int = 0
    ) -> Iterator[Frame]:
        """Decode frames from `start` to `stop` (all N by default), with the cursor drawn.

        Args:
            size: (width, height) to scale to, after the cursor is drawn; None keeps the size.
            stop: Number of the first frame that is left out.
            start: Number of the first frame.

        Raises:
            RecordingError: There are fewer frames, or they cannot be decoded.
        """
        stop = len(self) if stop is None else min(stop, len(self))
        cursor, number = self._ticks.cursor, start

        def draw(number: int, frame: Frame) -> None:
            if number < len(cursor) and not np.isnan(cursor[number, 0]):
                x, y = cursor[number] * (frame.shape[0] / WINDOW_HEIGHT)
                _draw_cursor(frame, int(x), int(y))

        try:
            frames = read_video(self._video, size, start, draw=draw)
            for frame in islice(frames, max(0, stop - start)):
                yield frame
                number += 1
        except (OSError, av.error.FFmpegError) as error:
            raise RecordingError(f"{str(self._video)!r} is damaged: {error}.") from error
        if number < stop:
            raise RecordingError(f"{str(self._video)!r} ends before frame {number}.")

    def problems(self) -> list[str]:
        """Return what is wrong with the parts that can be read, in sentences."""
        problems = []
        facts, lines = self._facts, self._lines
        if facts.frames < facts.promised:
            problems.append(
                f"the video is cut off: {facts.frames:,} of {facts.promised:,} frames are whole"
            )
        if facts.frames > lines + 1:
            problems.append(f"{facts.frames - lines:,} frames have no line")
        if lines > facts.frames:
            problems.append(f"{lines - facts.frames:,} lines have no frame")
        if round(facts.fps) != FRAMES_PER_SECOND:
            problems.append(f"the video has {facts.fps:g} frames per second, not 20")
        ticks = self._ticks
        if ticks.problem is not None:
            return [*problems, ticks.problem]
        jumps = np.flatnonzero((np.diff(ticks.tick) != 1) & (ticks.tick[1:] >= 0))
        if len(jumps):
            problems.append(
                f"{len(jumps)} of its ticks do not follow the one before, the first in line "
                f"{jumps[0] + 2}: frames after it may not be those of their lines"
            )
        return problems

    def _read_lines(self) -> Iterator[bytes]:
        """Yield the lines that are not blank, up to the first that is far too long to be one."""
        with self.path.open("rb") as file:
            for _ in range(MOST_LINES):
                line = file.readline(Excerpt.longest)
                if not line:
                    return
                if not line.isspace():
                    yield line
                if len(line) == Excerpt.longest:
                    return


def _columns(lines: Iterator[bytes], most: int) -> _Ticks:
    """Apply the rules of the module's table to lines, up to the first that is none."""
    keys = np.zeros((most, len(KEYS)), np.uint8)
    degrees, cursor = np.zeros((most, 2), np.float32), np.full((most, 2), np.nan, np.float32)
    view, tick = np.full((most, 2), np.nan), np.full(most, -1, np.int64)
    is_stuck, selected, problem, count = False, 0, None, 0
    for row, line in enumerate(lines):
        try:
            told = parse_excerpt(line, LineExcerpt)
        except SmallFileError as error:
            problem = f"line {row + 1} is no tick: {error}"
            break
        mouse = told.mouse
        is_stuck = mouse.newButtons == [0] if row == 0 else is_stuck and 0 not in mouse.newButtons
        pressed = {_KEY_OF[key] for key in told.keyboard.keys if key in _KEY_OF}
        pressed |= {_BUTTONS[button] for button in mouse.buttons if button in _BUTTONS}
        if is_stuck:
            pressed.discard("attack")
        if told.isGuiOpen and _ESCAPE in told.keyboard.keys:
            pressed.add("inventory")
        if told.hotbar != selected:
            pressed.add(HOTBAR_KEYS[told.hotbar])
        selected = told.hotbar
        keys[row, [_COLUMN[key] for key in pressed]] = 1
        degrees[row] = mouse.dy * DEGREES_PER_COUNT, mouse.dx * DEGREES_PER_COUNT
        if told.isGuiOpen:
            cursor[row] = mouse.x, mouse.y
        if told.yaw is not None and told.pitch is not None:
            view[row] = told.pitch, told.yaw
        tick[row] = -1 if told.tick is None else told.tick
        count = row + 1
    read = slice(count)
    return _Ticks(keys[read], degrees[read], cursor[read], view[read], tick[read], problem)


@cache
def _cursor_picture() -> NDArray[np.uint8]:
    """Return the engine's cursor, RGBA; like OpenAI's, a white arrow of 16x16 pixels."""
    from PIL import Image  # imported here because few recordings need it

    textures = Path(__file__).parents[1] / "env/voxel/resource_pack/assets/minecraft/textures"
    return np.array(Image.open(textures / "gui/cursor.png").convert("RGBA"))


def _draw_cursor(frame: Frame, x: int, y: int) -> None:
    """Draw the cursor with its tip at (x, y), which may lie beyond the frame."""
    x, y = max(x, 0), max(y, 0)
    part = frame[y : y + 16, x : x + 16, :3]
    arrow = _cursor_picture()[: part.shape[0], : part.shape[1]]
    np.copyto(part, arrow[..., :3], where=arrow[..., 3:] > 0)


class Turning(NamedTuple):
    """How the view follows the mouse, by regression over the ticks without an open screen.

    Attributes:
        lag: Ticks by which the line that tells the turned view is later than expected: 0 if the
            next line tells it.
        share: Degrees that the view turns per degree that the mouse says; 1 at the sensitivity with
            which OpenAI recorded.
        correlation: Of the two; if it is low, lines do not belong together.
    """

    lag: int
    share: float
    correlation: float


def turning_of(recording: ContractorRecording) -> Turning | None:
    """Return how the view follows the mouse; None if lines tell no view, or nothing turned."""
    ticks = recording._ticks
    mouse = np.where(np.isnan(ticks.cursor[:-1, 1]), ticks.degrees[:-1, 1], 0.0)
    turns = (np.diff(ticks.view[:, 1]) + 180) % 360 - 180
    found = []
    for lag in (0, -1, 1):
        said, done = (mouse[1:-1], turns[1 + lag : len(turns) - 1 + lag])
        usable = ~np.isnan(done) & (said != 0) & (np.abs(said) < 90)
        said, done = said[usable], done[usable]
        power = np.sqrt((said**2).sum() * (done**2).sum()) if len(said) else 0.0
        if power:
            product = float((said * done).sum())
            found.append(Turning(lag, product / float((said**2).sum()), product / float(power)))
    return max(found, key=lambda turning: turning.correlation, default=None)


# -------------------------------------------------------------------------------------- writing one

_KEYBOARD = {key: name for name, key in _KEY_OF.items()}
_ELSEWHERE = 1e5
"""Position of a cursor outside the frame: the environment's frames show theirs already."""
_STATISTICS = ("use_item", "pickup", "break_item", "craft_item", "mine_block", "kill_entity")
"""Entries of an info that the recorder tells as one, `stats`."""


class ContractorLayout(Layout):
    """Writes `NAME.mp4` and `NAME.jsonl`, as OpenAI's recorder does, from keys and degrees.

    The video has N + 1 frames. A slot counts as selected from the line that presses its key, and an
    attack that begins in line 0 is not told as newly pressed: readers would take it as stuck.
    """

    takes_keys = True

    @staticmethod
    def place_of(path: Path) -> Path:
        """Return the file of lines."""
        return path.with_name(f"{path.name}{LINES}")

    def __init__(self, path: Path, video: VideoOptions) -> None:
        self.path = path
        self.partial = Unfinished(path).partial
        self.partial.mkdir(parents=True, exist_ok=True)
        self.frames = VideoWriter(
            self.partial / f"{path.name}{VIDEO}",
            FRAMES_PER_SECOND,
            crf=video.crf,
            preset=video.preset,
        )
        self._file = (self.partial / f"{path.name}{LINES}").open("w", encoding="utf-8")
        self.files = (self._file,)
        self._pressed: tuple[set[str], set[int]] = (set(), set())
        self._info: Mapping[str, Any] = {}
        self._slot = self._tick = 0

    def see(self, sight: Sight) -> None:
        """Write the frame, and keep the info until the action is known."""
        self.frames.add(sight.shown)
        self._info = sight.info

    def act(self, step: RecordedStep) -> None:
        """Write a line."""
        info, (keys_before, buttons_before) = self._info, self._pressed
        pressed = [key for key in KEYS if int(np.asarray(step.action.get(key, 0)).item())]
        keys = {_KEYBOARD[key] for key in pressed if key in _KEYBOARD}
        buttons = {number for number, key in _BUTTONS.items() if key in pressed}
        slots = [HOTBAR_KEYS.index(key) for key in pressed if key in HOTBAR_KEYS]
        self._slot = slots[-1] if slots else self._slot
        pitch, yaw = (float(a) / DEGREES_PER_COUNT for a in step.action.get("camera", (0, 0)))
        is_open = bool(info.get("isGuiOpen"))
        place = _ELSEWHERE if is_open else 0.0
        where = info.get("player_pos", {})
        line = {
            "mouse": {
                **{"x": place, "y": place, "dx": yaw, "dy": pitch, "dwheel": 0.0},
                "buttons": sorted(buttons),
                "newButtons": sorted(buttons - buttons_before) if self._tick else [],
            },
            "keyboard": {"keys": sorted(keys), "newKeys": sorted(keys - keys_before), "chars": ""},
            "isGuiOpen": is_open,
            "isGuiInventory": is_open,
            "hotbar": self._slot,
            **{axis: where.get(axis, 0.0) for axis in ("yaw", "pitch")},
            **{f"{axis}pos": where.get(axis, 0.0) for axis in "xyz"},
            "tick": self._tick,
            "milli": self._tick * 1000 // FRAMES_PER_SECOND,
            "inventory": [
                stack for stack in info.get("inventory", {}).values() if stack.get("quantity")
            ],
            "stats": {
                f"minecraft.{kind}:minecraft.{name}": count
                for kind in _STATISTICS
                for name, count in (info.get(kind) or {}).items()
            },
        }
        self._file.write(f"{to_json(line)}\n")
        self._pressed, self._tick = (keys, buttons), self._tick + 1

    def complete(self, facts: Mapping[str, Any]) -> list[tuple[Path, Path]]:
        """Return the files and their final paths; the format has no place for facts."""
        lines = self.place_of(self.path)
        names = (lines.with_suffix(VIDEO).name, lines.name)
        return [(self.partial / name, lines.with_name(name)) for name in names]
