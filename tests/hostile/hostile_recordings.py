"""Recordings that are damaged, lie, or were made to do harm."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from hostile_weights import pickles
from judging import ACCEPTED, Case
from PIL import Image

from rllib_minestudio.recordings import EpisodeWriter
from rllib_minestudio.recordings.columns import LmdbFile
from rllib_minestudio.recordings.layout import EPISODE_FILE, INFOS_FILE, STEPS_FILE, VIDEO_FILE
from tests.recordings.contractor_files import played, write

STEPS = 6


def honest(folder: Path) -> Path:
    writer = EpisodeWriter(folder / "episode")
    frame = np.zeros((16, 16, 3), np.uint8)
    writer.begin(frame, {"a": 1})
    for t in range(STEPS):
        action = {"buttons": np.array([t]), "camera": np.array([60])}
        writer.add(action, 0.5, False, t == STEPS - 1, frame=frame, info={"a": t})
    return writer.finish({"seed": 1})


def read(folder: str) -> str:
    """What cloning reads of an episode, and what a person asks of it."""
    from rllib_minestudio.demonstrations import (
        WindowOptions,
        find_episodes,
        open_episode,
        windows,
    )

    paths = find_episodes(folder)
    for path in paths:
        episode = open_episode(path)
        for _ in windows(episode, WindowOptions(4, 2, size=(16, 16))):
            pass
        dict(episode.observations)
        if hasattr(episode, "infos"):
            for _ in episode.infos():
                pass
    return f"{len(paths)} episodes"


def _changed(change: Callable[[Path], None]) -> Callable[[Path], str]:
    def prepare(folder: Path) -> str:
        change(honest(folder))
        return str(folder)

    return prepare


def _meta(**changes):
    def change(episode: Path) -> None:
        meta = json.loads((episode / EPISODE_FILE).read_text())
        (episode / EPISODE_FILE).write_text(json.dumps({**meta, **changes}))

    return _changed(change)


def _file(name: str, content: bytes):
    return _changed(lambda episode: (episode / name).write_bytes(content))


def _columns(**changes) -> bytes:
    columns = {
        "reward": np.zeros(STEPS, np.float32),
        "terminated": np.zeros(STEPS, bool),
        "truncated": np.zeros(STEPS, bool),
        "value": np.zeros(STEPS, np.float32),
        "buttons": np.zeros(STEPS, np.uint16),
        "camera": np.zeros(STEPS, np.uint16),
    }
    stream = io.BytesIO()
    np.savez_compressed(
        stream, **{k: v for k, v in {**columns, **changes}.items() if v is not None}
    )
    return stream.getvalue()


def _observed(column: np.ndarray) -> Callable[[Path], str]:
    """A column of observations that is not what the description says."""

    def change(episode: Path) -> None:
        meta = json.loads((episode / EPISODE_FILE).read_text())
        meta["observations"] = {"x": {"shape": [4], "dtype": "uint8"}}
        (episode / EPISODE_FILE).write_text(json.dumps(meta))
        (episode / STEPS_FILE).write_bytes(_columns(**{"obs/x": column}))

    return _changed(change)


def _flipped(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


def _lying_column() -> bytes:
    """A column whose header claims more numbers than there is memory for."""
    stream = io.BytesIO(_columns(reward=None))
    with zipfile.ZipFile(stream, "a") as archive:
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000,), }".ljust(117)
        archive.writestr("reward.npy", b"\x93NUMPY\x01\x00v\x00" + header + b"\n")
    return stream.getvalue()


def _picture(width: int, height: int) -> bytes:
    stream = io.BytesIO()
    Image.new("1", (width, height)).save(stream, "PNG")
    return stream.getvalue()


def _of_people(change: Callable[[list[str]], list[str]], video: bytes | None = None):
    """A contractor's recording, whose lines are changed, or its video replaced."""

    def prepare(folder: Path) -> str:
        lines = write(folder, "NAME", played(STEPS))
        lines.write_text("\n".join(change(lines.read_text().splitlines())))
        if video is not None:
            lines.with_suffix(".mp4").write_bytes(video)
        return str(folder)

    return prepare


def _line(**changes):
    return _of_people(lambda told: [told[0], json.dumps({**json.loads(told[1]), **changes})])


def _dataset(content: bytes = b"") -> Callable[[Path], str]:
    """MineStudio's dataset, whose first chunk of actions begins with something else."""

    def prepare(folder: Path) -> str:
        shutil.copytree(Path(__file__).parents[1] / "recordings/minestudio_dataset", folder / "d")
        file = folder / "d/action/part-1/data.mdb"
        with LmdbFile(file) as database:
            chunk = database.get(b"(0, 0)", 10**6)
        data = file.read_bytes().replace(chunk, content + chunk[len(content) :])
        file.write_bytes(data)
        return str(folder)

    return prepare


def _of_others() -> Iterator[Case]:
    yield Case("a contractor's", _of_people(lambda told: told), read, ACCEPTED)
    yield Case("a dataset of MineStudio's", _dataset(), read, ACCEPTED)
    for name, changes in (
        ("a slot that there is not", {"hotbar": 9}),
        ("a slot that is no number", {"hotbar": "1"}),
        ("no mouse", {"mouse": None}),
        ("a mouse at the end of the world", {"mouse": {"dx": 1e300, "dy": 0, "buttons": []}}),
        ("a mouse that is no number", {"mouse": {"dx": float("nan"), "dy": 0, "buttons": []}}),
        ("many keys", {"keyboard": {"keys": ["key.keyboard.w"] * 10**5}}),
        ("a long key", {"keyboard": {"keys": ["w" * 10**6]}}),
        ("a deep state", {"stats": json.loads("[" * 900 + "]" * 900)}),
    ):
        # The episode ends before such a line, which `rllib data check` names.
        yield Case(f"a line: {name}", _line(**changes), read, ACCEPTED)
    yield Case("a line of 100 MB", _of_people(lambda told: [*told, "x" * 10**8]), read, ACCEPTED)
    yield Case("no line", _of_people(lambda told: []), read, ACCEPTED)
    for size in (0, 100, 10**6):
        video = os.urandom(size)
        yield Case(f"a film of {size} bytes of noise", _of_people(list, video), read)
    for name, content in pickles():
        if 0 < len(content) < 1000:
            yield Case(f"a chunk: {name}", _dataset(content), read)


def cases() -> Iterator[Case]:
    yield from _of_others()
    yield Case("honest", lambda folder: (honest(folder), str(folder))[1], read, ACCEPTED)
    for length in (-1, 10**12, 10**30, 1.5, "6", None, True, [6], STEPS + 1, STEPS - 1):
        yield Case(f"length {length!r}", _meta(length=length), read)
    for keys in (5, "abc", [1], ["a"], {"a": 1}, ["forward"] * 10**5):
        yield Case(f"keys {str(keys)[:20]}", _meta(keys=keys), read)
    for name, value in (("video", 5), ("return", "x"), ("return", float("nan")), ("version", [])):
        yield Case(f"{name} {value!r}", _meta(**{name: value}), read)
    one = {"shape": [1], "dtype": "uint8"}
    for name, told in (
        ("a list", [one]),
        ("a number", 5),
        ("a text", {"x": "uint8"}),
        ("a column that is not there", {"x": one}),
        ("too many", {f"x{i}": one for i in range(1000)}),
        ("objects", {"x": {"shape": [1], "dtype": "O"}}),
        ("a structure", {"x": {"shape": [1], "dtype": [["a", "u1"]]}}),
        ("complex numbers", {"x": {"shape": [1], "dtype": "complex128"}}),
        ("a negative side", {"x": {"shape": [-1], "dtype": "uint8"}}),
        ("a side that is no integer", {"x": {"shape": [1.0], "dtype": "uint8"}}),
        ("no shape", {"x": {"dtype": "uint8"}}),
        ("many sides", {"x": {"shape": [1] * 60, "dtype": "uint8"}}),
        ("too large", {"x": {"shape": [2**20, 2**10], "dtype": "uint8"}}),
        ("too large together", {f"x{i}": {"shape": [2**22], "dtype": "uint8"} for i in range(99)}),
    ):
        yield Case(f"observations: {name}", _meta(observations=told), read)
    for name, column in (
        ("too few rows", np.zeros((STEPS - 1, 4), np.uint8)),
        ("another shape", np.zeros((STEPS, 2, 2), np.uint8)),
        ("another dtype", np.zeros((STEPS, 4), np.int8)),
        ("objects", np.array([{}] * STEPS, object)),
        ("gigabytes of zeros", np.zeros((STEPS, 10**8), np.uint8)),
    ):
        yield Case(f"obs/x: {name}", _observed(column), read)
    for name, text in (
        ("nested", b"[" * 100_000),
        ("a list", b"[]"),
        ("a number", b"5"),
        ("empty", b""),
        ("no text", b"\xff\xfe\x00"),
        ("digits", b'{"length": ' + b"9" * 5000 + b"}"),
    ):
        yield Case(f"episode.json {name}", _file(EPISODE_FILE, text), read)
    for name, changes in (
        ("a missing column", {"reward": None}),
        ("a column too long", {"reward": np.zeros(10**7, np.float32)}),
        ("gigabytes of zeros", {"reward": np.zeros(2 * 10**8, np.float32)}),
        ("a column of doubles", {"reward": np.zeros(STEPS)}),
        ("a column of objects", {"reward": np.array([{}] * STEPS, object)}),
        ("nan as reward", {"reward": np.full(STEPS, np.nan, np.float32)}),
        ("two dimensions", {"buttons": np.zeros((STEPS, 2), np.uint16)}),
        ("tokens out of range", {"buttons": np.full(STEPS, 65535, np.uint16)}),
        ("camera out of range", {"camera": np.full(STEPS, 121, np.uint16)}),
    ):
        yield Case(f"steps: {name}", _file(STEPS_FILE, _columns(**changes)), read)
    yield Case("steps: a lying header", _file(STEPS_FILE, _lying_column()), read)
    for name, content in (
        ("no zip", b"abc"),
        ("empty", b""),
        ("a pickle", pickle.dumps({})),
        ("cut off", _columns()[:-30]),
        ("one flipped bit", _flipped(_columns(), _columns().index(b"reward.npy") + 40)),
    ):
        yield Case(f"steps: {name}", _file(STEPS_FILE, content), read)
    lines = b'{"a": 1}\n' * (STEPS + 1)
    for name, content in (
        ("no gzip", lines),
        ("cut off", gzip.compress(lines)[:-6]),
        ("too few", gzip.compress(b"{}\n")),
        ("too many", gzip.compress(lines * 1000)),
        ("a number", gzip.compress(b"5\n" * (STEPS + 1))),
        ("a list", gzip.compress(b"[1]\n" * (STEPS + 1))),
        ("nested", gzip.compress(b"[" * 10**6)),
        ("no list of keys", gzip.compress(b'{"-": 5}\n' * (STEPS + 1))),
        ("a line of gigabytes", gzip.compress(b'{"a": "' + b"a" * 600_000_000, 1)),
    ):
        yield Case(f"infos: {name}", _file(INFOS_FILE, content), read)
    for name, content in (
        ("empty", b""),
        ("text", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"),
        ("a list of files", b"ffconcat version 1.0\nfile /etc/passwd\n"),
        ("garbage", bytes(1000)),
    ):
        yield Case(f"video: {name}", _file(VIDEO_FILE, content), read)

    def cut(episode: Path) -> None:
        content = (episode / VIDEO_FILE).read_bytes()
        (episode / VIDEO_FILE).write_bytes(content[: len(content) // 2])

    def pictures(content: bytes) -> Callable[[Path], None]:
        def change(episode: Path) -> None:
            (episode / "frames").mkdir()
            for t in range(STEPS + 1):
                (episode / "frames" / f"{t:06d}.jpg").write_bytes(content)

        return change

    def pipe(name: str) -> Callable[[Path], None]:
        def change(episode: Path) -> None:
            (episode / name).unlink()
            os.mkfifo(episode / name)

        return change

    yield Case("video: cut off", _changed(cut), read)
    yield Case("pictures: immense", _changed(pictures(_picture(30_000, 30_000))), read)
    yield Case("pictures: garbage", _changed(pictures(b"\xff\xd8\xff" + bytes(50))), read)
    yield Case("pictures: cut off", _changed(pictures(_picture(64, 64)[:40])), read)
    for name in (EPISODE_FILE, VIDEO_FILE, STEPS_FILE, INFOS_FILE):
        yield Case(f"a named pipe: {name}", _changed(pipe(name)), read)
    yield from _minestudio()


def _minestudio() -> Iterator[Case]:
    """MineStudio's `action_*.pkl`."""

    def prepared(content: bytes) -> Callable[[Path], str]:
        def prepare(folder: Path) -> str:
            episode = honest(folder)
            (folder / "action_x.pkl").write_bytes(content)
            (episode / VIDEO_FILE).rename(folder / "video_x.mp4")
            for file in episode.iterdir():
                file.unlink()
            return str(folder)

        return prepare

    good = [{"buttons": np.array([1]), "camera": np.array([60])}] * STEPS
    yield Case("honest action.pkl", prepared(pickle.dumps(good)), read, ACCEPTED)
    for name, content in pickles():
        yield Case(f"action.pkl: {name}", prepared(content), read)
    for name, actions in (
        ("two tokens", [{"buttons": np.array([1, 2]), "camera": np.array([1])}]),
        ("a negative token", [{"buttons": np.array([-1]), "camera": np.array([1])}] * STEPS),
        ("texts", [{"buttons": "a", "camera": "b"}] * STEPS),
        ("no list", 5),
        ("numbers", [1, 2, 3]),
        ("arrays", [np.arange(3)] * STEPS),
        ("arrays of names", [np.array(["buttons", "camera"])] * STEPS),
        ("a huge token", [{"buttons": 10**30, "camera": 60}] * STEPS),
        ("a token of thousands of digits", [{"buttons": 1, "camera": 10**5000}] * STEPS),
        ("a huge key", [{"attack": 10**30, "camera": np.zeros(2)}] * STEPS),
        ("a huge rotation", [{"camera": [10**400, 0]}] * STEPS),
        ("a rotation in words", [{"camera": ["north", "east"]}] * STEPS),
    ):
        yield Case(f"action.pkl: {name}", prepared(pickle.dumps(actions)), read)
