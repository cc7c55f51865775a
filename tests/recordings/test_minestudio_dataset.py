"""MineStudio's datasets: read as MineStudio does, without unpickling or trusting them, and written.

`minestudio_dataset/` was made by MineStudio's own converters; see the README in it.
"""

import gzip
import os
import pickle
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio.demonstrations.windows import (
    MineStudioWindows,
    WindowOptions,
    action_tokens,
    windows,
)
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import MineStudioError, RecordingError
from rllib_minestudio.recordings import EpisodeWriter
from rllib_minestudio.recordings.columns import LmdbFile, LmdbFileError
from rllib_minestudio.recordings.contractor import ContractorLayout
from rllib_minestudio.recordings.episodes import find_episodes, open_episode, survey
from rllib_minestudio.recordings.minestudio_dataset import DatasetLayout, dataset_at
from rllib_minestudio.recordings.video import VideoOptions, scaled
from tests.recordings.contractor_files import frame, played, write

HERE = Path(__file__).parent
MADE = HERE / "minestudio_dataset"
PROGRAM = HERE / "programs" / "minestudio_data.py"
LENGTHS = {"someone-0-2021": 40, "someone-1-2021": 24}
OPTIONS = [
    {"win_len": 8},
    {"win_len": 13},
    {"win_len": 30},
    {"win_len": 6, "skip_frame": 3},
    {"win_len": 7, "previous_action": True},
    {"win_len": 5, "skip_frame": 2, "previous_action": True},
]
SIZE = (24, 16)

needs_minestudio = pytest.mark.skipif(
    find_spec("minestudio") is None, reason="MineStudio is not installed"
)


def assert_same(ours, theirs, place=()):
    """Equal to the bit, with shapes and dtypes."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), place
        for key, value in theirs.items():
            assert_same(ours[key], value, (*place, key))
    elif isinstance(theirs, np.ndarray):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), place
        assert (ours == theirs).all(), place
    else:
        assert ours == theirs and type(ours) is type(theirs), place


def compare_windows(dataset, file):
    """Compare what MineStudio's RawDataset read with our windows."""
    read = pickle.loads(gzip.decompress(file.read_bytes()))
    for options, theirs in zip(OPTIONS, read, strict=True):
        ours = MineStudioWindows(dataset, **options, size=SIZE)
        assert len(ours) == len(theirs)
        for i, window in enumerate(theirs):
            assert_same(ours[i], window, (str(options), i))


def test_windows_are_those_that_minestudios_dataset_read():
    compare_windows(MADE, MADE / "windows.pkl.gz")


def run(*arguments):
    command = [sys.executable, PROGRAM, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


@needs_minestudio
def test_what_minestudios_converters_make_of_our_files_is_what_we_read_of_them(tmp_path):
    """Written by `ContractorLayout` and as OpenAI's recorder does; no escape, see `contractor`."""
    root = tmp_path / "root"
    for number, name in enumerate(LENGTHS):
        write(root / "mp4", name, played(LENGTHS[name] + 5, number), size=(640, 360))
    writer = EpisodeWriter(root / "mp4" / "ours", ContractorLayout)
    mapper, tokens = ActionMapper(), np.random.default_rng(0).integers(121, size=17)
    shown = frame(0, (640, 360))
    writer.begin(shown, {"player_pos": {}, "inventory": {}})
    for t, token in enumerate(tokens):
        action = mapper.to_env(31 * t + 1, int(token))
        writer.add(action, 0.0, False, t == 16, frame=shown, info={"inventory": {}})
    writer.finish()
    (root / "jsonl").mkdir()
    for file in (root / "mp4").glob("*.jsonl"):
        file.rename(root / "jsonl" / file.name)
    dataset = root / "data"
    run("convert", root, dataset)
    run("windows", dataset, tmp_path / "windows.pkl.gz")
    compare_windows(dataset, tmp_path / "windows.pkl.gz")
    people, converted = root / "jsonl", dataset_at(dataset)
    assert converted.episodes == {**LENGTHS, "ours-0": 16}
    for name, length in converted.episodes.items():
        theirs = open_episode(converted.path_of(name)).steps
        ours = open_episode(people / f"{name.removesuffix('-0')}.jsonl").steps
        for column, values in theirs.items():
            np.testing.assert_array_equal(ours[column][:length], values)


def test_episodes_become_windows_to_imitate():
    paths = find_episodes(MADE)
    assert {path.name: len(open_episode(path)) for path in paths} == LENGTHS
    episode = open_episode(paths[0])
    (window,) = windows(episode, WindowOptions(40, 0, size=SIZE))
    theirs = MineStudioWindows(MADE, win_len=40, size=SIZE)[0]
    np.testing.assert_array_equal(window.image, theirs["image"])
    for name in ("buttons", "camera"):
        np.testing.assert_array_equal(getattr(window, name), theirs["agent_action"][name].ravel())
    some = list(episode.frames(None, 19, 5))
    np.testing.assert_array_equal(some, list(episode.frames())[5:19])
    assert str(survey([MADE])) == "2 episodes, 0.0 hours, 64 frames (minestudio-dataset)"


def damaged(folder, change):
    """A copy of the dataset, of which `change` gets the databases."""
    shutil.copytree(MADE, folder)
    change({path.parts[-3]: path for path in folder.glob("*/*/data.mdb")})
    return folder


def overwrite(path, old, new):
    data = path.read_bytes()
    assert data.count(old)
    path.write_bytes(data.replace(old, new))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["action"].write_bytes(b"not LMDB" * 999), "not a file of LMDB's"),
        (lambda d: os.truncate(d["action"], 9000), "missing: the file is cut off"),
        (lambda d: os.truncate(d["image"], 70), "it is cut off"),
        (lambda d: overwrite(d["action"], b"__chunk_size__", b"__chunk_sizE__"), "has no entry"),
        (lambda d: overwrite(d["image"], b"num_frames", b"num_framez"), "has -1 frames"),
        (lambda d: overwrite(d["image"], b"someone-1-2021", b"some/ne-1-2021"), "has the name"),
        (lambda d: overwrite(d["image"], b"someone-1-2021", b"someone-2-2021"), "24 actions and 0"),
    ],
)
def test_databases_that_cannot_be_read_are_named(tmp_path, change, reason):
    found = survey([damaged(tmp_path / "data", change)])
    assert found.broken and len(found.lengths) <= 1
    assert any(reason in why for why in found.broken.values()), found.broken


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: overwrite(d["action"], b"camera", b"Camera"), "has no actions at frame 0"),
        (lambda d: overwrite(d["action"], b"numpy", b"nUmpy"), "wants to import"),
        (lambda d: overwrite(d["image"], b"moov", b"moof"), "is damaged"),
        (lambda d: overwrite(d["action"], b"(0, 8)", b"(0, 9)"), "has no entry"),
    ],
)
def test_chunks_that_cannot_be_read_are_named(tmp_path, change, reason):
    (path, *_) = find_episodes(damaged(tmp_path / "data", change))
    episode = open_episode(path)
    with pytest.raises(RecordingError, match=reason):
        list(windows(episode, WindowOptions(16, 0)))


def test_no_flipped_byte_does_more_than_to_spoil_an_episode(tmp_path):
    rng = np.random.default_rng(0)
    original = {path.parts[-3]: path.read_bytes() for path in MADE.glob("*/*/data.mdb")}
    folder, ends = damaged(tmp_path / "data", lambda databases: None), {"read": 0, "refused": 0}
    for turn in range(60):
        kind = ("action", "meta_info")[turn % 2]
        data = np.frombuffer(original[kind], np.uint8).copy()
        places = rng.integers(len(data), size=2)
        data[places] = rng.integers(256, size=2)
        (folder / kind / "part-1" / "data.mdb").write_bytes(data.tobytes())
        try:
            for path in find_episodes(folder):
                action_tokens(open_episode(path))
                if dataset_at(folder).is_informed(path.name):
                    list(dataset_at(folder).decoded("meta_info", path.name, 0, 24))
            ends["read"] += 1
        except MineStudioError:
            ends["refused"] += 1
    assert min(ends.values()) > 5, ends


class TestWithLmdb:
    """What needs the package `lmdb`."""

    @pytest.fixture(autouse=True)
    def lmdb(self):
        return pytest.importorskip("lmdb", reason="pip install rllib-minestudio[lmdb]")

    def test_every_entry_of_a_large_database_is_found(self, tmp_path, lmdb):
        values = {f"({i % 7}, {i})": bytes([i % 251]) * (i * 37 % 9000) for i in range(3000)}
        with lmdb.open(str(tmp_path), map_size=2**30) as database:
            with database.begin(write=True) as transaction:
                for key, value in values.items():
                    transaction.put(key.encode(), value)
            with database.begin(write=True) as transaction:  # leaves free pages
                for key in list(values)[::5]:
                    transaction.delete(key.encode())
                    del values[key]
        with LmdbFile(tmp_path / "data.mdb") as file:
            for key, value in values.items():
                assert file.get(key.encode(), 10_000) == value
            with pytest.raises(LmdbFileError, match="no entry '\\(0, 0\\)'"):
                file.get(b"(0, 0)", 10_000)
            largest = max(values, key=lambda key: len(values[key]))
            with pytest.raises(LmdbFileError, match="bytes, more than 9"):
                file.get(largest.encode(), 9)

    def test_what_is_written_comes_back(self, tmp_path):
        self._written(tmp_path, steps=40)
        (path,) = find_episodes(tmp_path)
        episode = open_episode(path)
        assert len(episode) == 40 and path.name == "NAME"
        np.testing.assert_array_equal(list(episode.frames()), [frame(t) for t in range(40)])
        mapper = ActionMapper()
        expected = [mapper.from_env(mapper.to_env(100 * t + 1, t)) for t in range(40)]
        assert action_tokens(episode).T.tolist() == [list(pair) for pair in expected]
        last = MineStudioWindows(tmp_path, win_len=32, size=SIZE)[1]
        assert last["meta_info"]["step"] == [*range(32, 40), *[None] * 24]
        np.testing.assert_array_equal(last["image"][7], scaled(frame(39), SIZE))
        assert last["image_mask"].tolist() == [1] * 8 + [0] * 24

    @needs_minestudio
    def test_minestudios_dataset_reads_what_is_written(self, tmp_path):
        self._written(tmp_path / "data", steps=40)
        run("windows", tmp_path / "data", tmp_path / "windows.pkl.gz")
        compare_windows(tmp_path / "data", tmp_path / "windows.pkl.gz")

    @staticmethod
    def _written(folder, steps):
        writer = EpisodeWriter(
            folder / "NAME", DatasetLayout, VideoOptions(crf=0), ActionMapper().keys_of
        )
        writer.begin(frame(0), {"step": 0, "pov": frame(0)})
        for t in range(steps):
            action, info = {"buttons": 100 * t + 1, "camera": t}, {"step": t + 1}
            writer.add(action, 0.0, False, t == steps - 1, frame=frame(t + 1), info=info)
        assert writer.finish() == DatasetLayout.place_of(folder / "NAME")
        assert DatasetLayout.place_of(folder / "NAME").exists()
        assert sorted(os.listdir(folder)) == ["action", "image", "meta_info"]
