"""Observations besides the frame are recorded as they were before each action."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from rllib_minestudio import MineStudioEnv
from rllib_minestudio.env.recorder import EpisodeRecorder, RecorderOptions
from rllib_minestudio.errors import RecordingError
from rllib_minestudio.foundation.observations import flattened
from rllib_minestudio.recordings import EpisodeWriter, Recording, columns
from rllib_minestudio.recordings.layout import EPISODE_FILE

TASKS = [{"name": "dig", "text": "dig a hole"}, {"name": "chop", "text": "fälle"}]
CALLBACKS = ["PrevAction", {"Task": TASKS}, {"JudgeReset": 12}]
FRAME = np.zeros((16, 16, 3), np.uint8)


def write(folder: Path, *rows: dict | None) -> Recording:
    writer = EpisodeWriter(folder)
    writer.begin(FRAME, {})
    for row in rows:
        action = {"buttons": 1, "camera": 60}
        writer.add(action, 0.0, False, False, frame=FRAME, info={}, seen=row)
    return Recording(writer.finish({}))


def test_what_the_agent_saw_before_each_action_comes_back(tmp_path):
    env = MineStudioEnv(obs_size=[32, 32], num_empty_frames=1, callbacks=CALLBACKS)
    recorder = EpisodeRecorder(env, RecorderOptions(str(tmp_path)))
    recorder.action_space.seed(0)
    obs, _ = recorder.reset(seed=5)
    seen, done = [], False
    while not done:
        seen.append(flattened(obs))
        obs, _, _, done, info = recorder.step(recorder.action_space.sample())
    found = Recording(info["recording"]).observations
    assert set(found) == set(seen[0]) - {"image"} and len(found) == 22
    for name, column in found.items():
        expected = np.stack([row[name] for row in seen])
        assert column.dtype == expected.dtype
        np.testing.assert_array_equal(column, expected)
    assert bytes(found["task_text"][3]).rstrip(b"\0").decode() == info["task_text"]
    assert not found["env_prev_action.camera"][0].any()
    assert found["env_prev_action.camera"][1:].any()


@pytest.mark.parametrize("format", ["minestudio", "contractor"])
def test_formats_of_others_leave_them_out(tmp_path, format):
    env = MineStudioEnv(obs_size=[32, 32], num_empty_frames=1, callbacks=CALLBACKS)
    recorder = EpisodeRecorder(env, RecorderOptions(str(tmp_path), format=format))
    recorder.reset(seed=5)
    while not recorder.step({"buttons": 0, "camera": 60})[3]:
        pass
    assert not recorder.failures


def test_recordings_without_them_have_none(tmp_path):
    recording = write(tmp_path / "e", None, None)
    assert dict(recording.observations) == {} == recording.meta["observations"]


def test_every_dtype_and_shape_comes_back(tmp_path):
    rows = [
        {"flag": np.bool_(t % 2), "half": np.float16(t), "map": np.full((2, 0, 3), t, np.uint64)}
        for t in range(3)
    ]
    recording = write(tmp_path / "e", *rows)
    for name, column in recording.observations.items():
        np.testing.assert_array_equal(column, np.stack([row[name] for row in rows]))
        assert column.dtype == rows[0][name].dtype
    described = recording.meta["observations"]["map"]
    assert described == {"shape": [2, 0, 3], "dtype": "uint64"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"x": np.zeros(2)}, {"x": np.zeros(3)}], "not those of the first"),
        ([{"x": np.zeros(2)}, {}], "not those of the first"),
        ([{"x": np.zeros(2, complex)}], r"observations\.x\.dtype must be one of 'bool'"),
        ([{"x": np.zeros(300, np.uint8)}] * 4, "at most 1000 bytes large"),
        ([{f"x{i}": np.zeros(0) for i in range(300)}], "at most 256 entries"),
    ],
)
def test_what_a_reader_would_refuse_is_not_written(tmp_path, monkeypatch, rows, message):
    monkeypatch.setattr(columns, "MOST_BYTES", 1000)
    with pytest.raises(RecordingError, match=message):
        write(tmp_path / "e", *rows)
    assert not list(tmp_path.iterdir())


def test_a_description_is_judged_before_anything_is_read(tmp_path):
    write(tmp_path / "e", {"x": np.zeros(4, np.float32)})
    file = tmp_path / "e" / EPISODE_FILE
    meta = json.loads(file.read_text())
    meta["observations"]["x"]["shape"] = [2**30, 2**30]
    file.write_text(json.dumps(meta))
    with pytest.raises(
        RecordingError, match=r"episode\.json' is damaged: observations\.x\.shape\[0\]"
    ):
        Recording(tmp_path / "e")
    meta["observations"]["x"]["shape"] = [5]
    file.write_text(json.dumps(meta))
    with pytest.raises(RecordingError, match=r"steps\.npz' is damaged: column 'obs/x' must have"):
        Recording(tmp_path / "e").observations["x"]


class LongerText(gym.ObservationWrapper):
    """Gives more than its space promises."""

    def observation(self, obs):
        return {**obs, "task_text": np.zeros(80, np.uint8)}


def test_an_environment_that_breaks_its_promise_costs_the_recording_only(tmp_path):
    env = MineStudioEnv(obs_size=[32, 32], callbacks=[{"Task": TASKS}, {"JudgeReset": 3}])
    recorder = EpisodeRecorder(LongerText(env), RecorderOptions(str(tmp_path)))
    recorder.reset(seed=1)
    *_, info = [recorder.step({"buttons": 0, "camera": 60})[4] for _ in range(3)]
    assert "promises 'task_text' as uint8 (64,)" in info["recording_error"]
    assert not list(tmp_path.iterdir())
