"""Demonstrations are recorded exactly, in any order, and go on where they were interrupted."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio import Policy
from rllib_minestudio.cli.main import main
from rllib_minestudio.demonstrations import WindowOptions, windows
from rllib_minestudio.demonstrations.recording import ORDER_FILE, missing, play_episode, record
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.agents import HumanlikeHunter
from rllib_minestudio.env.recorder import EpisodeRecorder, RecorderOptions
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.names import INVENTORY_TOKEN
from rllib_minestudio.recordings import find_recordings

from .conftest import COWS, KILL, TASK


def test_recorded_tokens_lead_through_the_recorded_frames(recordings):
    recording = recordings[1]
    env = MineStudioEnv(TASK)
    obs, _ = env.reset(seed=recording.meta["seed"])
    seen, rewards = [obs["image"]], []
    tokens = zip(recording.steps["buttons"], recording.steps["camera"], strict=True)
    for buttons, camera in tokens:
        action = {"buttons": int(buttons), "camera": int(camera)}
        assert env.action_space.contains({k: np.array([v]) for k, v in action.items()})
        obs, reward, _, truncated, _ = env.step(action)
        seen.append(obs["image"])
        rewards.append(reward)
    assert truncated
    np.testing.assert_array_equal(np.stack(list(recording.frames())), np.stack(seen))
    np.testing.assert_array_equal(recording.steps["reward"], np.float32(rewards))


@pytest.mark.slow
def test_recording_goes_on_and_keeps_what_there_is(order, recordings, tmp_path):
    list(record(order, tmp_path, 1))
    (first,) = tmp_path.rglob("video.mp4")
    before = first.stat().st_mtime_ns
    assert missing(order, tmp_path, 3) == [1, 2]
    done = list(record(order, tmp_path, 3))
    assert sorted(episode.number for episode in done) == [1, 2]
    assert first.stat().st_mtime_ns == before
    for ours, theirs in zip(find_recordings(tmp_path), recordings, strict=True):
        np.testing.assert_array_equal(ours.steps["buttons"], theirs.steps["buttons"])
        assert ours.video_path.read_bytes() == theirs.video_path.read_bytes()


def test_a_folder_holds_demonstrations_of_one_kind(order, recordings):
    folder = recordings[0].path.parents[1]
    with pytest.raises(InvalidOptionsError, match="differ in crf, seed"):
        list(record(replace(order, seed=8, crf=23), folder, 3))


def test_unknown_agents_and_animals_are_named(order, tmp_path):
    with pytest.raises(InvalidOptionsError) as caught:
        list(record(replace(order, agent="hunte", prey=("cwo",)), tmp_path, 1))
    assert "Did you mean 'hunter'?" in caught.value.problems[0]
    assert "Did you mean 'cow'?" in caught.value.problems[1]
    assert not list(tmp_path.iterdir())


def test_what_a_toolmaker_makes_is_one_of_its_crafts(order, tmp_path):
    with pytest.raises(InvalidOptionsError, match="Did you mean 'stone_pickaxe'"):
        list(record(replace(order, agent="toolmaker", make="stone_pickax"), tmp_path, 1))
    with pytest.raises(InvalidOptionsError, match="toolmaker only, not 'hunter'"):
        list(record(replace(order, make="stick"), tmp_path, 1))


ENDLESS = """
from pathlib import Path
from sys import argv
from rllib_minestudio.demonstrations.recording import RecordingOrder, record
from rllib_minestudio.env import MineStudioEnv

if __name__ == "__main__":
    task = {"obs_size": [32, 32], "callbacks": [{"JudgeReset": {"time_limit": 10**6}}]}
    list(record(RecordingOrder("endless", MineStudioEnv, task, "random"), Path(argv[1]), 2, 2))
"""


@pytest.mark.slow
def test_nobody_plays_on_when_recording_is_killed(tmp_path):
    program, out = tmp_path / "endless.py", tmp_path / "out"
    program.write_text(ENDLESS)
    with subprocess.Popen([sys.executable, program, out]) as recorder:
        while len(list(out.rglob("*.mp4*"))) < 2:
            assert recorder.poll() is None
            time.sleep(0.1)
        pids = Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split()
        recorder.kill()
    assert len(pids) >= 2
    patience = time.monotonic() + 30
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < patience
        time.sleep(0.1)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_command_records_the_task_of_an_experiment_file(tmp_path, capsys):
    task = tmp_path / "task.yaml"
    task.write_text("cows: {env: MineStudioEnv, config: {env_config: {callbacks: [{JudgeReset: {time_limit: 5}}]}}}")  # fmt: skip  # noqa: E501
    arguments = ["record", str(task), "--agent", "random", "--episodes", "2", "--workers", "1"]
    out = ["--out", str(tmp_path / "out"), "--set", "env_config.obs_size=[32, 32]"]
    assert main([*arguments, *out]) == 0
    assert [len(recording) for recording in find_recordings(tmp_path / "out")] == [5, 5]
    assert main([*arguments, *out]) == 0
    assert "2 of 2 episodes are already recorded" in capsys.readouterr().out


def test_hunters_follow_the_task_of_the_episode(order, tmp_path):
    herds = [{**COWS, "name": name} for name in ("cow", "sheep")]
    tasks = [{"name": f"hunt {name}", "text": name, "prey": [name]} for name in ("cow", "sheep")]
    counted = [{**KILL, "objects": [name], "task": f"hunt {name}"} for name in ("cow", "sheep")]
    callbacks = [{"Task": tasks}, "PrevAction", {"SummonMobs": {"mobs": herds}}]
    callbacks += [{"Rewards": {"reward_cfg": counted}}, *TASK["callbacks"][2:]]
    config = {**TASK, "obs_size": [32, 32], "callbacks": callbacks}
    both = replace(order, env_config=config, agent="perfect-hunter", prey=("pig",), seed=1)
    list(record(both, tmp_path, 4))
    hunted = set()
    for recording in find_recordings(tmp_path):
        *_, last = recording.infos()
        told = recording.observations["task_text"]
        assert bytes(told[0]).rstrip(b"\0").decode() == last["task_text"]
        assert (told == told[0]).all() and len(told) == len(recording)
        killed = last["kill_entity"]
        assert recording.meta["return"] == killed.pop(last["task_text"]) > sum(killed.values())
        hunted.add(last["task"])
    assert hunted == {"hunt cow", "hunt sheep"}


def test_a_prey_that_no_hunter_knows_is_named(order, tmp_path):
    config = {**TASK, "callbacks": [{"Task": [{"name": "hunt", "prey": ["cwo"]}]}]}
    with pytest.raises(InvalidOptionsError, match=r"prey of the task 'hunt'.*Did you mean 'cow'"):
        list(record(replace(order, env_config=config), tmp_path, 1))


def test_the_command_names_what_is_wrong_with_the_task(tmp_path, capsys):
    task = tmp_path / "task.yaml"
    task.write_text("cows: {env: MineStudioEnv, config: {env_config: {obs_sise: [32, 32]}}}")
    assert main(["record", str(task), "--episodes", "1", "--out", str(tmp_path / "out")]) == 2
    assert "obs_size" in capsys.readouterr().err


@pytest.mark.slow
def test_an_agent_takes_over_from_a_novice_and_only_its_steps_are_imitated(tmp_path, capsys):
    words = ["record", "cow", "--episodes", "2", "--out", str(tmp_path), "--workers", "2"]
    words += ["--novice", "package:hunter_nano", "--novice-steps", "20"]
    words += ["--set", "env_config.callbacks.3={JudgeReset: {time_limit: 30}}"]
    assert main(words) == 0
    takeovers = []
    for one in find_recordings(tmp_path):
        takeover = one.meta["takeover"]
        takeovers.append(takeover)
        assert one.meta["novice"] == "package:hunter_nano"
        env = MineStudioEnv(one.meta["env"])
        policy = Policy.load("package:hunter_nano", env, seed=one.meta["seed"])
        obs, _ = env.reset(seed=one.meta["seed"])
        agent = HumanlikeHunter(seed=one.meta["seed"])
        for step in range(len(one)):
            if step == takeover > 0:
                agent.take_over()
            action = policy.act(obs) if step < takeover else agent.act(env)
            assert [np.ravel(action[name]) for name in ("buttons", "camera")] == [
                one.steps[name][step] for name in ("buttons", "camera")
            ]
            obs, *_ = env.step(action)
        weight = np.concatenate([w.weight for w in windows(one, WindowOptions(8, 0))])
        imitated = np.flatnonzero(weight)
        np.testing.assert_array_equal(imitated, np.arange(one.meta["imitated_from"], len(one)))
    assert len(set(takeovers)) > 1 and max(takeovers) <= 20
    assert main(words) == 0
    assert "2 of 2 episodes are already recorded" in capsys.readouterr().out
    file = tmp_path / ORDER_FILE
    file.write_text(file.read_text().replace('"novice_weights": "', '"novice_weights": "0'))
    assert main(words) == 2
    assert "demonstrations that differ in novice_weights" in capsys.readouterr().err


class _Opener:
    """Opens the inventory in the sixth step, and stares at it."""

    def __init__(self) -> None:
        self._step = 0

    def act(self, obs):
        self._step += 1
        return {"buttons": INVENTORY_TOKEN if self._step == 6 else 0, "camera": 60}


def test_how_an_agent_leaves_a_novices_screen_is_not_imitated(order, tmp_path):
    config = {**TASK, "callbacks": [{"JudgeReset": {"time_limit": 40}}]}
    given = replace(
        order, env_config=config, agent="toolmaker", prey=(), make="crafting_table", novice_steps=9
    )
    env = EpisodeRecorder(order.make_env(config), RecorderOptions(str(tmp_path)))
    for index in range(4):
        play_episode(env, given, index, lambda seed: _Opener())
    env.close()
    delayed = []
    for one in find_recordings(tmp_path):
        takeover, start = one.meta["takeover"], one.meta["imitated_from"]
        screens = [info["isGuiOpen"] for info in one.infos()]
        assert all(screens[takeover:start]) and not screens[start]
        delayed.append(start > takeover)
        weights = np.concatenate([w.weight for w in windows(one, WindowOptions(8, 0))])
        np.testing.assert_array_equal(np.flatnonzero(weights), np.arange(start, len(one)))
    assert any(delayed) and not all(delayed)


def test_a_novice_that_there_is_not_or_that_does_not_fit_is_named(order, tmp_path, capsys):
    with pytest.raises(InvalidOptionsError, match="novice_steps"):
        list(record(replace(order, novice_steps=5), tmp_path, 1))
    words = ["record", "cow", "--episodes", "1", "--out", str(tmp_path / "out"), "--novice"]
    assert main([*words, "package:hunter_nan"]) == 2
    assert "package:hunter_nan" in capsys.readouterr().err
    assert main([*words, "package:hunter_nano", "--set", "env_config.obs_size=[32, 32]"]) == 2
    assert "obs_size" in capsys.readouterr().err
    assert main([*words[:-1], "--novice-steps", "5"]) == 2
    assert "novice_steps" in capsys.readouterr().err
    assert not list((tmp_path / "out").rglob("*.mp4"))


def test_prey_is_for_hunters(tmp_path, capsys):
    words = ["record", "cow", "--agent", "toolmaker", "--prey", "cow", "--episodes", "1"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert "prey is for hunters only, not the agent 'toolmaker'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("format", "place"),
    [
        ("episodes", "episode-00000"),
        ("contractor", "episode-00000.jsonl"),
        ("minestudio", "info_37919964-77a9-531f-bdb2-1c7276967e14.pkl"),
        ("minestudio-dataset", "meta_info/episode-00000"),
    ],
)
def test_what_is_recorded_in_its_format_is_not_recorded_again(order, tmp_path, format, place):
    asked = replace(order, format=format)
    assert missing(asked, tmp_path, 2) == [0, 1]
    (tmp_path / "episodes" / place).mkdir(parents=True)
    assert missing(asked, tmp_path, 2) == [1]
