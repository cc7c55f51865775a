"""What was written is what is read; a recording is whole or not there."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio.errors import RecordingError
from rllib_minestudio.recordings import EpisodeWriter, Recording, find_recordings
from rllib_minestudio.recordings.layout import EPISODE_FILE, INFOS_FILE, STEPS_FILE, VIDEO_FILE
from rllib_minestudio.recordings.video import VideoOptions
from rllib_minestudio.recordings.writer import LAYOUTS

STEPS = 12


def picture(t: int) -> np.ndarray:
    """Three bars whose colours tell red, green and blue apart, and a brightness that tells t."""
    frame = np.full((36, 64, 3), 10 * t, np.uint8)
    for channel in range(3):
        frame[4:32, 4 + 20 * channel : 20 + 20 * channel] = 0
        frame[4:32, 4 + 20 * channel : 20 + 20 * channel, channel] = 255
    return frame


def info(t: int) -> dict:
    counts = {"cow": t // 4} if t >= 4 else {}
    extra = {"odd": True} if t % 2 else {}
    return {"kill_entity": counts, "inventory": {0: {"type": "bow"}}, "t": np.int64(t), **extra}


def action(t: int) -> dict:
    return {"buttons": np.array([8640 - t]), "camera": np.array([t])}


def record(path: Path, steps: int = STEPS, act=action, **options):
    writer = EpisodeWriter(path, **options)
    writer.begin(picture(0), info(0))
    for t in range(steps):
        last = t == steps - 1
        writer.add(act(t), 0.5, False, last, frame=picture(t + 1), info=info(t + 1), value=t)
    return writer


def test_tokens_outcomes_and_identity_come_back(tmp_path):
    record(tmp_path / "e").finish({"seed": 7, "success": True, "video": {"source": "pov"}})
    recording = Recording(tmp_path / "e")
    assert len(recording) == STEPS
    assert recording.meta["return"] == STEPS / 2 and recording.meta["seed"] == 7
    assert recording.meta["video"]["source"] == "pov"
    steps = recording.steps
    np.testing.assert_array_equal(steps["buttons"], 8640 - np.arange(STEPS))
    np.testing.assert_array_equal(steps["camera"], np.arange(STEPS))
    np.testing.assert_array_equal(steps["truncated"], [False] * (STEPS - 1) + [True])
    np.testing.assert_array_equal(steps["value"], np.arange(STEPS))
    assert not steps["terminated"].any() and steps["reward"].sum() == STEPS / 2


def test_infos_come_back_whole_although_only_changes_are_stored(tmp_path):
    record(tmp_path / "e").finish({})
    expected = json.loads(json.dumps([info(t) for t in range(STEPS + 1)], default=int))
    assert list(Recording(tmp_path / "e").infos()) == expected
    with gzip.open(tmp_path / "e" / INFOS_FILE, "rt") as lines:
        assert [json.loads(line) for line in lines][2] == {"t": 2, "-": ["odd"]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", r"line 3: it must be a mapping; got \[1\]"),
        (
            '{"mine_block": {"dirt": 1%s}}' % ("0" * 40),
            r"line 3: mine_block\.dirt must be an int.*",
        ),
        ('{"-": "odd"}', r"line 3: \['-'\] must be a list; got 'odd'"),
        ('{"t": 1, "t": 2}', "line 3: it has the key 't' twice"),
    ],
)
def test_an_info_that_is_wrong_is_named_by_line_and_field(tmp_path, line, message):
    record(tmp_path / "e").finish({})
    file = tmp_path / "e" / INFOS_FILE
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    file.write_bytes(gzip.compress("\n".join([*lines[:2], line, *lines[3:]]).encode()))
    with pytest.raises(RecordingError, match=rf"infos\.jsonl\.gz' is damaged: {message}\.$"):
        list(Recording(tmp_path / "e").infos())


@pytest.mark.parametrize(
    "video, decibels",
    [(VideoOptions(), 30), (VideoOptions(crf=0), math.inf), (VideoOptions(media="jpeg"), 30)],
)
def test_frames_come_back_in_order_and_colour(tmp_path, video, decibels):
    record(tmp_path / "e", video=video).finish({})
    frames = list(Recording(tmp_path / "e").frames())
    assert len(frames) == STEPS + 1
    for t, frame in enumerate(frames):
        error = np.mean((frame.astype(float) - picture(t)) ** 2)
        assert error == 0 or 10 * math.log10(255**2 / error) > decibels
        assert abs(frame.mean() - picture(t).mean()) < 2
        for channel in range(3):
            assert frame[18, 12 + 20 * channel].argmax() == channel


def test_frames_can_be_scaled_and_cut_off(tmp_path):
    record(tmp_path / "e").finish({})
    frames = list(Recording(tmp_path / "e").frames(size=(16, 8), stop=3))
    assert [frame.shape for frame in frames] == [(8, 16, 3)] * 3


def test_keys_and_degrees_come_back(tmp_path):
    def keys(t):
        return {"forward": t % 2, "attack": 1, "camera": np.array([t, -t])}

    record(tmp_path / "e", act=keys).finish({})
    recording = Recording(tmp_path / "e")
    assert recording.meta["keys"] == ["forward", "attack"]
    np.testing.assert_array_equal(recording.steps["keys"][:2], [[0, 1], [1, 1]])
    np.testing.assert_array_equal(recording.steps["degrees"][3], [3, -3])


def test_nothing_is_there_before_the_end_and_nothing_of_what_is_discarded(tmp_path):
    writer = record(tmp_path / "e")
    assert list(find_recordings(tmp_path)) == []
    writer.finish({})
    record(tmp_path / "f").discard()
    assert [r.path.name for r in find_recordings(tmp_path)] == ["e"]
    assert os.listdir(tmp_path) == ["e"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_every_layout_an_episode_is_whole_or_not_there(tmp_path, layout):
    def open_one():
        pressed = {"attack": 1, "camera": (0.0, 1.5)}
        return record(tmp_path / "e", layout=LAYOUTS[layout], keys_of=lambda tokens: pressed)

    def files():
        return {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    writer = open_one()
    (hidden,) = tmp_path.iterdir()
    assert hidden.name.startswith(".")
    assert writer.finish({"seed": 1}).exists() and not hidden.exists()
    finished = files()
    open_one().discard()
    assert len(finished) >= 2 and files() == finished


def test_a_recording_is_replaced_as_a_whole(tmp_path):
    record(tmp_path / "e").finish({"attempt": 1})
    record(tmp_path / "e", steps=3).finish({"attempt": 2})
    recording = Recording(tmp_path / "e")
    assert len(list(recording.frames())) == 4 and recording.meta["attempt"] == 2


def test_a_kill_in_the_middle_leaves_nothing_that_looks_whole(tmp_path):
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.recordings.test_recording import record\n"
        "record(Path(sys.argv[1]) / 'e'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(__file__).parents[2]
    child = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root)
    assert child.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) != [] and list(find_recordings(tmp_path)) == []


@pytest.mark.parametrize("name", [STEPS_FILE, INFOS_FILE, VIDEO_FILE])
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_damage_is_named(tmp_path, name, damage):
    record(tmp_path / "e").finish({})
    file = tmp_path / "e" / name
    half = file.read_bytes()[: file.stat().st_size // 2]
    file.unlink()
    if damage == "cut":
        file.write_bytes(half)
    recording = Recording(tmp_path / "e")
    with pytest.raises(RecordingError, match=f"e/{name}' is damaged"):
        for _ in recording.frames():
            pass
        for _ in recording.infos():
            pass
        assert recording.steps


def test_another_format_is_refused(tmp_path):
    record(tmp_path / "e").finish({})
    file = tmp_path / "e" / EPISODE_FILE
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 99}))
    with pytest.raises(RecordingError, match="version 99; this version reads"):
        Recording(tmp_path / "e")
    with pytest.raises(RecordingError, match="is not a recording"):
        Recording(tmp_path)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(RecordingError, match="file/e' cannot be recorded"):
        EpisodeWriter(tmp_path / "file" / "e")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_an_error_that_says_so_and_leaves_nothing(tmp_path):
    writer = record(tmp_path / "e")
    partial = next(tmp_path.iterdir())
    (partial / STEPS_FILE).symlink_to("/dev/full")
    with pytest.raises(RecordingError, match="No space left"):
        writer.finish({})
    assert os.listdir(tmp_path) == []
    shutil.rmtree(tmp_path)


def test_recordings_are_listed_while_others_are_made_and_discarded(tmp_path):
    """As a page does whose player discards; folders vanish between two looks of whoever lists."""
    record(tmp_path / "e").finish({})
    is_over = threading.Event()

    def make_and_discard():
        while not is_over.is_set():
            for number in range(20):
                (tmp_path / f".{number}.partial" / "inner").mkdir(parents=True, exist_ok=True)
            for number in range(20):
                shutil.rmtree(tmp_path / f".{number}.partial")

    other = threading.Thread(target=make_and_discard)
    other.start()
    try:
        for _ in range(300):
            assert [r.path.name for r in find_recordings(tmp_path)] == ["e"]
    finally:
        is_over.set()
        other.join()


LONG = """
import resource, sys
from pathlib import Path
import numpy as np
from rllib_minestudio.recordings import EpisodeWriter

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

scene = np.random.default_rng(0).integers(256, size=(36, 64, 3), dtype=np.uint8)
scene = scene.repeat(5, axis=0).repeat(5, axis=1)
writer = EpisodeWriter(Path(sys.argv[1]))
writer.begin(scene, {})
for t in range(12_000):
    if t == 1_000:
        early = peak()
    frame = np.roll(scene, 3 * t, axis=1)
    info = {"player_pos": {"x": float(t)}, "inventory": {i: t // 100 for i in range(36)}}
    writer.add({"buttons": t % 8641, "camera": t % 121}, 0.0, False, t == 11_999,
               frame=frame, info=info)
writer.finish({})
print(early, peak())
"""


@pytest.mark.slow
def test_a_long_episode_takes_no_more_memory_than_a_short_one(tmp_path):
    script = [sys.executable, "-c", LONG, str(tmp_path / "long")]
    root = Path(__file__).parents[2]
    done = subprocess.run(script, cwd=root, check=True, capture_output=True, text=True)
    early, late = map(float, done.stdout.split())
    assert late - early < 24  # MB; the frames alone would be 2 GB
    recording = Recording(tmp_path / "long")
    assert len(recording) == 12_000 == len(recording.steps["reward"])
    assert sum(1 for _ in recording.frames(size=(16, 8))) == 12_001
