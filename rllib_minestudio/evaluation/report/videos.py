"""Videos in a page: part of it as long as there is room, and linked beyond."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from urllib.parse import quote


class VideoSources:
    """What `src` of a page's videos is: the video itself, up to a number of bytes in all.

    Attributes:
        folder: Of the page, which links are relative to.
        room: Bytes of video that can still become part of the page.
    """

    def __init__(self, folder: Path, max_embedded: int) -> None:
        """Begin a page.

        Args:
            folder: Where it will be.
            max_embedded: Bytes of all videos together that may become part of it.
        """
        self.folder = folder
        self.room = max_embedded

    def source(self, video: Path) -> str:
        """Return the source of one more video, an mp4 file."""
        size = video.stat().st_size
        if size > self.room:
            return quote(Path(os.path.relpath(video, self.folder)).as_posix())
        self.room -= size
        return "data:video/mp4;base64," + base64.b64encode(video.read_bytes()).decode()
