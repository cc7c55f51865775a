"""What page and server tell each other.

The page sends texts, each a JSON mapping with one entry, whose key says what it is about:

    {"hand": {"keys": ["forward"], "turn": [0.0, 1.5]}}      {"seen": 17}      {"speed": 0.5}

The server sends texts about what rarely changes, likewise, and pictures as binary messages:

    4 bytes        length of the JSON, big-endian
    JSON           {"number": 17, "views": [{..., "pictures": [{"name": "view", "bytes": 9313}]}]}
    JPEG files     one after the other, in the order of the JSON
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import Field, model_validator

from rllib_minestudio.env.actions import KEYS
from rllib_minestudio.errors import WatchError
from rllib_minestudio.foundation.documents import (
    Contradiction,
    Count,
    Document,
    Name,
    parse_document,
)
from rllib_minestudio.foundation.files import SmallFileError, parse_json
from rllib_minestudio.recordings.layout import to_json
from rllib_minestudio.recordings.video import Frame

LARGEST_MESSAGE = 16 * 1024
"""Limit on the bytes of a message from the page."""

SLOWEST, FASTEST = 0.05, 16.0
"""Bounds of the speed; 1 is the game's, 20 steps a second."""

MOST_VIEWS = 2

_Degrees = Annotated[float, Field(ge=-3600, le=3600)]
_Turn = Annotated[list[_Degrees], Field(min_length=2, max_length=2)]
_Keys = Annotated[list[Literal[KEYS]], Field(max_length=len(KEYS))]  # type: ignore[valid-type]
_WorldSeed = Annotated[int, Field(ge=0, le=2**31 - 1)]


class HandDocument(Document):
    """A change of what the person's hands do.

    Attributes:
        keys: Keys that are held from now on.
        tapped: Keys that went down since the last message, perhaps up again already.
        turn: Turn of the camera since the last message: pitch and yaw in degrees.
        scroll: Notches of the wheel since the last message; positive goes to the next slot.
    """

    keys: _Keys
    tapped: _Keys = Field(default_factory=list)
    turn: _Turn = Field(default_factory=lambda: [0.0, 0.0])
    scroll: Annotated[int, Field(ge=-100, le=100)] = 0


class OpenDocument(Document):
    """What to view: one or two entries of the catalogue, and the seed of their worlds."""

    entries: Annotated[list[Name], Field(min_length=1, max_length=MOST_VIEWS)]
    seed: _WorldSeed | None = None


class KeepDocument(Document):
    """Keep the recording, under the name of whoever played."""

    agent: Name


class PlayOnDocument(Document):
    """Play on from a step after which a recorded episode holds the whole game.

    Attributes:
        view: Which of the views shows the episode.
        step: The step.
    """

    view: Annotated[int, Field(ge=0, le=MOST_VIEWS - 1)]
    step: Count


class MessageDocument(Document):
    """A message from the page; exactly one of the fields is given.

    Attributes:
        open: Show other views.
        hand: The person's hands do something else.
        seen: The picture of this number is on the screen.
        look: Whether the page is visible.
        run: Whether time passes.
        step: So many single steps.
        speed: How fast time passes.
        seek: Show this step of a recorded episode.
        play_on: Let the person play on from a step of a recorded episode.
        restart: Begin again, in the world of this seed; -1 draws one.
        keep: Keep the recording.
        discard: Discard the recording.
        refresh: Tell again what there is to view.
    """

    open: OpenDocument | None = None
    hand: HandDocument | None = None
    seen: Count | None = None
    look: bool | None = None
    run: bool | None = None
    step: Annotated[int, Field(ge=1, le=1000)] | None = None
    speed: Annotated[float, Field(ge=SLOWEST, le=FASTEST)] | None = None
    seek: Count | None = None
    play_on: PlayOnDocument | None = None
    restart: Annotated[int, Field(ge=-1, le=2**31 - 1)] | None = None
    keep: KeepDocument | None = None
    discard: bool | None = None
    refresh: bool | None = None

    @model_validator(mode="after")
    def _is_one(self) -> MessageDocument:
        if len(self.model_fields_set) != 1 or getattr(self, self.kind) is None:
            raise Contradiction("a message must have one entry that is not null")
        return self

    @property
    def kind(self) -> str:
        """The name of the field that is given."""
        return next(iter(self.model_fields_set))


def parse_message(text: str) -> MessageDocument:
    """Read a message from the page.

    Raises:
        WatchError: It is no such message.
    """
    try:
        return parse_document(parse_json(text), MessageDocument)
    except SmallFileError as error:
        raise WatchError(f"The page's message is refused: {error}.") from error


QUALITY = 88
"""Of JPEG, for a picture that is seen for a twentieth of a second."""


def as_jpeg(frame: Frame) -> bytes:
    """Return a frame, (height, width, 3) uint8 RGB, as a JPEG file."""
    file = io.BytesIO()
    # Small pictures are enlarged, so that colours at half the resolution would show.
    Image.fromarray(frame).save(file, "JPEG", quality=QUALITY, subsampling=0)
    return file.getvalue()


def picture_message(
    number: int, facts: Mapping[str, Any], views: Sequence[tuple[dict[str, Any], dict[str, Frame]]]
) -> bytes:
    """Return a binary message.

    Args:
        number: The message's number, which the page reports as `seen`.
        facts: What holds for all views.
        views: For each view its facts, and its pictures by name.
    """
    told, files = [], []
    for state, frames in views:
        shown = [(name, as_jpeg(frame)) for name, frame in frames.items()]
        files += [file for _, file in shown]
        pictures = [{"name": name, "bytes": len(file)} for name, file in shown]
        told.append({**state, "pictures": pictures})
    head = to_json({"number": number, **facts, "views": told}).encode()
    return b"".join([struct.pack(">I", len(head)), head, *files])


def text_message(kind: str, told: Any) -> str:
    """Return a text message: one entry, as the page sends them."""
    return json.dumps({kind: told}, default=str)
