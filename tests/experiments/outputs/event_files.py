"""Reading TensorBoard's event files without TensorBoard."""

import struct
from collections.abc import Iterator
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event


def read_events(folder: Path) -> Iterator[Event]:
    """Yield the events of all files in a folder, in their order.

    A record is a length (uint64), its checksum (4 bytes), the event, and its checksum (4 bytes).
    """
    for file in sorted(folder.glob("events.out.tfevents.*")):
        data, position = file.read_bytes(), 0
        while position < len(data):
            (length,) = struct.unpack_from("<Q", data, position)
            start = position + 12
            yield Event.FromString(data[start : start + length])
            position = start + length + 4
