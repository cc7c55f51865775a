"""The recorder shows what was there to see, and never stands in the way of the episode."""

from __future__ import annotations

import math
import os
import pickle

import av
import gymnasium as gym
import numpy as np
import pytest

from rllib_minestudio import MineStudioEnv
from rllib_minestudio.env.actions import KEYS
from rllib_minestudio.env.recorder import EpisodeRecorder, RecorderOptions
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.during_training import remove_recording
from rllib_minestudio.recordings import Recording, find_recordings
from rllib_minestudio.recordings.episodes import find_episodes, open_episode

STEPS = 24


class Witness(MineStudioEnv):
    """Keeps every frame that it shows."""

    shown: list[np.ndarray]

    def reset(self, **options):
        obs, info = super().reset(**options)
        self.shown = [obs["image"].copy()]
        return obs, info

    def step(self, action):
        result = super().step(action)
        self.shown.append(result[0]["image"].copy())
        return result


def make_env(tmp_path, size=(128, 128), limit=STEPS, **options):
    env = Witness(
        obs_size=size,
        render_size=(160, 90),
        num_empty_frames=1,
        preferred_spawn_biome="plains",
        callbacks=[{"JudgeReset": {"time_limit": limit}}],
    )
    return EpisodeRecorder(env, RecorderOptions.from_mapping({"folder": str(tmp_path), **options}))


def play(env, seed=3, name="one", **thoughts):
    env.action_space.seed(seed)
    env.reset(seed=seed, options={"recording": {"name": name, "index": 5}})
    done = False
    while not done:
        action = {**env.action_space.sample(), "value": np.float32(1.5), **thoughts}
        _, _, terminated, truncated, info = env.step(action)
        done = terminated or truncated
    return info


def decibels(frame, shown):
    return 10 * math.log10(255**2 / np.mean((frame.astype(float) - shown) ** 2))


def test_the_video_shows_what_the_agent_saw(tmp_path):
    env = make_env(tmp_path)
    recording = Recording(play(env)["recording"])
    shown = env.unwrapped.shown
    frames = list(recording.frames())
    assert len(frames) == len(shown) == STEPS + 1
    for t, frame in enumerate(frames):
        assert decibels(frame, shown[t]) > 30
        errors = [np.mean((frame.astype(float) - other) ** 2) for other in shown]
        assert errors[t] == min(errors)  # in order
    channels = np.mean(frames, axis=(0, 1, 2)) - np.mean(shown, axis=(0, 1, 2))
    assert np.abs(channels).max() < 2  # in the right colours
    assert recording.meta["index"] == 5 and recording.meta["seed"] == 3
    assert (recording.steps["value"] == 1.5).all()
    assert len(list(recording.infos())) == STEPS + 1


def test_an_episode_that_ends_in_the_void_is_recorded_to_the_last_frame(tmp_path):
    env = make_env(tmp_path, limit=400)
    env.reset(options={"recording": {"name": "void", "index": 0}})
    env.unwrapped.sim.env.engine.execute("/tp @p ~ -60 ~")
    terminated, steps = False, 0
    while not terminated:
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        steps += 1
        assert not truncated
    assert info["health"] == 0.0
    recording = Recording(info["recording"])
    assert recording.steps["terminated"].tolist() == [False] * (steps - 1) + [True]
    assert len(list(recording.frames())) == steps + 1
    _, info = env.reset(options={"recording": {"name": "next", "index": 1}})
    assert info["health"] == 20.0 and info["player_pos"]["y"] > 60.0


def test_lossless_is_lossless(tmp_path):
    env = make_env(tmp_path, crf=0)
    recording = Recording(play(env)["recording"])
    np.testing.assert_array_equal(list(recording.frames()), env.unwrapped.shown)


def test_a_recorded_episode_can_be_played_again_from_its_tokens(tmp_path):
    env = make_env(tmp_path)
    recording = Recording(play(env, seed=11)["recording"])
    before = [frame.copy() for frame in env.unwrapped.shown]
    env.reset(seed=recording.meta["seed"], options={"recording": {"name": "again"}})
    for buttons, camera in zip(recording.steps["buttons"], recording.steps["camera"], strict=True):
        env.step({"buttons": int(buttons), "camera": int(camera)})
    np.testing.assert_array_equal(env.unwrapped.shown, before)


def test_pov_is_recorded_at_the_render_size_and_the_overlay_stands_beneath_it(tmp_path):
    plain = Recording(play(make_env(tmp_path, source="pov"))["recording"])
    (frame, *_) = plain.frames()
    assert frame.shape == (90, 160, 3) and plain.meta["video"]["source"] == "pov"
    written = Recording(play(make_env(tmp_path / "o", source="pov", overlay=True))["recording"])
    (first, *_) = written.frames()
    assert first.shape == (270 + 56, 480, 3)  # enlarged, for the strip
    assert decibels(frame.repeat(3, axis=0).repeat(3, axis=1), first[:270]) > 25
    assert first[270:].mean() < 80


@pytest.mark.parametrize(("render_mode", "size"), [("rgb_array", (96, 64)), (None, (64, 48))])
def test_auto_records_what_the_environment_has(tmp_path, render_mode, size):
    env = MineStudioEnv(
        obs_size=(64, 48), render_size=(96, 64), render_mode=render_mode, num_empty_frames=1
    )
    options = RecorderOptions(str(tmp_path), source="auto")
    env = EpisodeRecorder(gym.wrappers.TimeLimit(env, 2), options)
    env.reset(seed=0)
    info = {}
    for _ in range(2):
        *_, info = env.step(env.action_space.sample())
    env.close()
    recording = Recording(info["recording"])
    assert all((frame.shape[1], frame.shape[0]) == size for frame in recording.frames())
    source = "observation" if render_mode is None else "pov"
    assert recording.meta["video"]["source"] == source


@pytest.mark.parametrize("options", [{"source": "pov"}, {"format": "minestudio"}])
def test_rendered_frames_of_an_environment_that_does_not_render_are_refused(tmp_path, options):
    env = MineStudioEnv(render_mode=None, num_empty_frames=1)
    with pytest.raises(InvalidOptionsError, match="its render_mode to rgb_array"):
        EpisodeRecorder(env, RecorderOptions(str(tmp_path), **options))
    env.close()


def test_the_overlay_tells_how_far_the_policy_is_from_its_prior(tmp_path):
    env = make_env(tmp_path, overlay=True, crf=0)
    without, with_kl = (
        Recording(play(env, name=name, **thoughts)["recording"])
        for name, thoughts in (("without", {}), ("with", {"kl": np.float32(0.25)}))
    )
    assert "kl" not in without.steps and (with_kl.steps["kl"] == 0.25).all()
    changed = [
        np.flatnonzero((a != b).any((1, 2)))
        for a, b in zip(without.frames(), with_kl.frames(), strict=True)
    ]
    assert len(changed[0]) == 0  # nothing was thought before the first frame
    for rows in changed[1:]:  # one more line, in the strip
        assert 5 <= len(rows) <= 12 and rows.min() >= 3 * 128


def test_minestudios_files_hold_what_its_worker_writes(tmp_path):
    info = play(make_env(tmp_path, format="minestudio"))
    with open(info["recording"], "rb") as file:
        infos = pickle.load(file)
    with open(info["recording"].replace("info_", "action_"), "rb") as file:
        actions = pickle.load(file)
    assert len(infos) == STEPS + 1 and len(actions) == STEPS
    assert infos[-1]["player_pos"] == info["player_pos"] and "pov" not in infos[0]
    assert set(actions[0]) == {*KEYS, "camera"}  # as in a real one: see tests/demonstrations
    assert actions[0]["attack"].shape == () and actions[0]["camera"].shape == (2,)
    video = info["recording"].replace("info_", "video_").replace(".pkl", ".mp4")
    with av.open(video) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height, stream.average_rate) == (160, 90, 30)
        assert sum(1 for _ in container.decode(stream)) == STEPS + 1
    assert len(os.listdir(tmp_path)) == 3


@pytest.mark.parametrize("format", ["contractor", "minestudio-dataset"])
@pytest.mark.parametrize("action_type", ["agent", "env"])
def test_files_that_others_read_hold_what_was_played(tmp_path, action_type, format):
    if format == "minestudio-dataset":
        pytest.importorskip("lmdb")
    options = RecorderOptions(str(tmp_path), format=format, crf=0)
    limit = {"JudgeReset": {"time_limit": 3}}
    sizes = {"obs_size": (64, 64), "render_size": (64, 36)}
    env = MineStudioEnv(**sizes, callbacks=[limit], action_type=action_type)
    recorder = EpisodeRecorder(env, options)
    recorder.action_space.seed(3)
    recorder.reset(seed=1)
    seen, truncated, done = [env.render()], False, []
    while not truncated:
        done.append(recorder.action_space.sample())
        *_, truncated, info = recorder.step(done[-1])
        seen.append(env.render())
    if action_type == "agent":
        done = [env.sim.agent_action_to_env_action(action) for action in done]
    (path,) = find_episodes(tmp_path)
    episode = open_episode(path)
    assert len(episode) == 3 and not episode.problems()
    for row, action in enumerate(done):
        pressed = dict(zip(KEYS, episode.steps["keys"][row].tolist(), strict=True))
        assert pressed == {key: int(action.get(key, 0)) for key in KEYS}
        np.testing.assert_allclose(episode.steps["degrees"][row], action["camera"], rtol=1e-5)
    np.testing.assert_array_equal(list(episode.frames())[:3], seen[:3])
    remove_recording(info["recording"])
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_minestudios_pictures(tmp_path):
    info = play(make_env(tmp_path, format="minestudio", media="jpeg"))
    folder = info["recording"].replace("info_", "images_").removesuffix(".pkl")
    assert set(os.listdir(folder)) == {f"{t}.jpeg" for t in range(STEPS + 1)}


def test_an_episode_that_is_cut_short_by_a_reset_is_not_kept(tmp_path):
    env = make_env(tmp_path)
    env.reset(seed=1)
    env.step(env.action_space.sample())
    play(env, name="whole")
    env.reset(seed=1)
    env.close()
    assert os.listdir(tmp_path) == ["whole"]


def test_a_place_that_cannot_be_written_costs_the_recording_and_not_the_episode(tmp_path):
    place = tmp_path / "file"
    place.write_text("not a folder")
    info = play(make_env(place))
    assert "cannot be recorded" in info["recording_error"] and "recording" not in info


def test_episodes_of_one_env_follow_each_other(tmp_path):
    env = make_env(tmp_path)
    for seed in (1, 2):
        env.action_space.seed(seed)
        env.reset(seed=seed)
        while not any(env.step(env.action_space.sample())[2:4]):
            pass
    names = [recording.path.name for recording in find_recordings(tmp_path)]
    assert names == ["episode-00000", "episode-00001"]


def test_impossible_options_are_refused_together(tmp_path):
    with pytest.raises(InvalidOptionsError) as caught:
        RecorderOptions.from_mapping({"folder": "x", "formt": 1, "source": "obs", "crf": 99})
    assert len(caught.value.problems) == 3 and "'format'" in str(caught.value)
    with pytest.raises(InvalidOptionsError, match="even width and height only; got 65x64"):
        make_env(tmp_path, size=(65, 64))


class Talkative(MineStudioEnv):
    """Shows a number and a text beside the frame."""

    def __init__(self, **options):
        super().__init__(**options)
        self.observation_space = gym.spaces.Dict(
            {
                **self.observation_space.spaces,
                "height": gym.spaces.Box(-1e9, 1e9, (1,), np.float32),
                "word": gym.spaces.Text(8),
            }
        )
        self.count = 0.0

    def _pass_on(self, obs, info):
        obs, info = super()._pass_on({"image": obs["image"], "height": 0, "word": ""}, info)
        self.count += 1.0
        return {**obs, "height": np.array([self.count], np.float32), "word": "cow"}, info


def test_what_no_array_can_hold_does_not_stand_in_the_way(tmp_path):
    """Numbers are recorded beside the frame, as they were before each action; texts are not."""
    env = Talkative(
        obs_size=(32, 32), num_empty_frames=0, callbacks=[{"JudgeReset": {"time_limit": 5}}]
    )
    env = EpisodeRecorder(env, RecorderOptions(str(tmp_path)))
    env.reset(seed=3)
    info = {}
    while "recording" not in info:
        *_, info = env.step({"buttons": 0, "camera": 60})
    (recording,) = find_recordings(tmp_path)
    assert list(recording.observations) == ["height"]
    np.testing.assert_array_equal(recording.observations["height"][:, 0], [1, 2, 3, 4, 5])
    env.close()
