"""Episodes that begin in a saved game: its future, what callbacks make of it, what is refused."""

import os
from dataclasses import replace

import numpy as np
import pytest

from rllib_minestudio.env import EpisodeRecorder, MineStudioEnv, RecorderOptions
from rllib_minestudio.errors import InvalidOptionsError, RecordingError, SnapshotError
from rllib_minestudio.recordings import Recording
from tests.algorithms.toy_envs import AttackOnRed

OPTIONS = {"obs_size": [32, 32], "num_empty_frames": 1, "action_type": "env"}
MINED = {
    **{"event": "mine_block", "objects": ["dirt"], "reward": 1.0},
    **{"identity": "mine", "max_reward_times": 9},
}


@pytest.fixture
def make():
    """Builds environments that are closed at the end."""
    built = []

    def build(**options):
        built.append(MineStudioEnv({**OPTIONS, **options}))
        return built[-1]

    yield build
    for env in built:
        env.close()


def act(env, **keys):
    return env.step({**env.sim.noop_action(), **keys})


def walk(env, steps):
    """Frames and places of a walk around."""
    found = []
    for step in range(steps):
        obs, _, _, _, info = act(env, forward=1, jump=step % 3 == 0, camera=np.array([1.0, step]))
        found.append((obs["image"].tobytes(), str(info["player_pos"])))
    return found


def test_an_episode_that_begins_in_a_saved_game_goes_as_that_game(make):
    env = make()
    env.reset(seed=3)
    walk(env, 15)
    saved = env.snapshot()
    act(env)  # as the tick without keys with which an episode begins
    expected = walk(env, 15)
    for other in (env, make()):
        other.reset(seed=9)
        _, info = other.reset(options={"snapshot": saved})
        assert walk(other, 15) == expected
    other.reset(seed=9)
    assert other.reset()[1]["player_pos"] != info["player_pos"]  # a new world again


def test_what_was_done_before_is_not_rewarded_again(make):
    env = make(callbacks=[{"Rewards": [MINED]}])
    env.reset(seed=3)
    env.sim.env.execute_cmd("/fill ~ ~-3 ~ ~ ~-2 ~ stone")
    env.sim.env.execute_cmd("/setblock ~ ~-1 ~ dirt")
    looking_down = {"camera": np.array([90.0, 0.0]), "attack": 1}
    rewards = [act(env, **looking_down)[1] for _ in range(60)]
    assert sum(rewards) == 1.0
    _, info = env.reset(options={"snapshot": env.snapshot()})
    assert info["mine_block"]["dirt"] == 1
    assert sum(act(env)[1] for _ in range(5)) == 0.0


def test_what_is_no_snapshot_is_refused_and_the_episode_goes_on(make):
    env = make()
    with pytest.raises(Exception, match="call reset"):
        env.snapshot()
    env.reset(seed=3)
    saved = env.snapshot()
    with pytest.raises(InvalidOptionsError, match=r"options\['snapshot'\] must be the bytes"):
        env.reset(options={"snapshot": "saved.bin"})
    with pytest.raises(SnapshotError, match="damaged"):
        env.reset(options={"snapshot": saved[:-1] + bytes([saved[-1] ^ 1])})
    before = env.sim.info["player_pos"]
    assert act(env)[4]["player_pos"]["x"] == before["x"]


def test_minecraft_refuses_snapshots_by_name(make):
    env = make()
    env.reset(seed=3)
    env.options = replace(env.options, engine="minecraft")
    for refuse in (env.snapshot, lambda: env.reset(options={"snapshot": b""})):
        with pytest.raises(InvalidOptionsError, match="engine: minecraft has no snapshots"):
            refuse()


# ------------------------------------------------------------------------- games in recordings


def test_an_episode_goes_on_from_any_game_that_its_recording_holds(make, tmp_path):
    limit = {"callbacks": [{"JudgeReset": {"time_limit": 30}}]}
    env = EpisodeRecorder(make(**limit), RecorderOptions(str(tmp_path), snapshot_interval=10))
    env.reset(seed=3, options={"recording": {"name": "one"}})
    frames = {}
    for step in range(30):
        # The tick after a saved game is without keys, as that with which an episode begins.
        keys = {} if step % 10 == 0 else {"forward": 1, "jump": 1, "camera": np.array([1.0, step])}
        obs, *_ = act_recorded(env, **keys)
        frames[step + 1] = obs["image"]
    recording = Recording(tmp_path / "one")
    assert recording.snapshot_steps == [0, 10, 20]  # at the end, there is nothing to go on with
    for begun in recording.snapshot_steps:
        other = make()
        obs, _ = other.reset(seed=5, options={"snapshot": recording.snapshot(begun)})
        assert np.array_equal(obs["image"], frames[begun + 1])
        for step in range(begun + 1, begun + 10):
            keys = {"forward": 1, "jump": 1, "camera": np.array([1.0, step])}
            assert np.array_equal(act(other, **keys)[0]["image"], frames[step + 1])


def act_recorded(env, **keys):
    return env.step({**env.unwrapped.sim.noop_action(), **keys})


def test_games_are_neither_saved_nor_read_where_there_are_none(make, tmp_path):
    env = EpisodeRecorder(make(), RecorderOptions(str(tmp_path)), on_request=True)
    env.reset(seed=3, options={"recording": {"name": "one"}})
    act_recorded(env)
    recording = Recording(env.keep())
    with pytest.raises(RecordingError, match="no game saved after step 0, but after no step"):
        recording.snapshot(0)
    options = {"folder": str(tmp_path), "format": "contractor", "snapshot_interval": 10}
    with pytest.raises(InvalidOptionsError, match="snapshot_interval must be 0 with format"):
        RecorderOptions.from_mapping(options)
    with pytest.raises(InvalidOptionsError, match="only MineStudioEnv with engine: voxel"):
        EpisodeRecorder(AttackOnRed(), RecorderOptions(str(tmp_path), snapshot_interval=10))


@pytest.mark.parametrize("harm", ["cut short", "a pipe", "a folder"])
def test_a_recordings_damaged_game_is_refused_in_a_sentence(make, tmp_path, harm):
    env = make()
    recorder = EpisodeRecorder(
        env, RecorderOptions(str(tmp_path), snapshot_interval=1), on_request=True
    )
    recorder.reset(seed=3, options={"recording": {"name": "one"}})
    act_recorded(recorder)
    recording = Recording(recorder.keep())
    file = recording.path / "snapshots" / "00000001.game"
    whole = file.read_bytes()
    file.unlink()
    if harm == "cut short":
        file.write_bytes(whole[:-5])
        with pytest.raises(SnapshotError, match="damaged"):
            env.reset(options={"snapshot": recording.snapshot(1)})
        return
    os.mkfifo(file) if harm == "a pipe" else file.mkdir()
    with pytest.raises(RecordingError, match="is damaged: it is not a regular file"):
        recording.snapshot(1)


# --------------------------------------------------------------------- episodes from recordings


@pytest.fixture
def recorded(make, tmp_path):
    """A folder with a recording of 25 steps, and games saved after 0, 10 and 20."""
    env = make(inventory={0: {"type": "dirt", "quantity": 7}}, natural_animals=False)
    options = RecorderOptions(str(tmp_path / "games"), snapshot_interval=10)
    recorder = EpisodeRecorder(env, options, on_request=True)
    recorder.reset(seed=3)
    for _ in range(25):
        act_recorded(recorder, forward=1)
    recorder.keep()
    return tmp_path / "games"


PREPARING = [
    {"FastReset": {"biomes": ["forest"], "random_tp_range": 1000}},
    {"InitInventory": [{"slot": 1, "type": "oak_log", "quantity": 3}]},
    {"SummonMobs": [{"name": "cow", "number": 2, "range_x": [-3, 3], "range_z": [-3, 3]}]},
    {"Commands": ["/give @p stick 5"]},
    {"HardReset": [{"seed": 5, "position": [0, 70, 0]}]},
]


def test_callbacks_that_prepare_games_leave_a_saved_one_as_it_is(make, recorded):
    (recording,) = (Recording(path) for path in recorded.iterdir())
    env = make(callbacks=PREPARING)
    for seed in (None, 4):  # where a fast reset would do, and where it would not
        env.reset(seed=seed)
        assert env.sim.info["inventory"][1]["type"] == "oak_log"
        _, info = env.reset(seed=seed, options={"snapshot": recording.snapshot(20)})
        kept = list(recording.infos())[20]
        assert info["inventory"] == {int(slot): s for slot, s in kept["inventory"].items()}
        assert info["player_pos"]["x"] == pytest.approx(kept["player_pos"]["x"], abs=0.2)
        assert info["player_pos"]["z"] == pytest.approx(kept["player_pos"]["z"], abs=0.2)
        assert env.sim.env.engine._game.state.mobs.count == 0


def test_a_share_of_the_episodes_begins_in_the_games_of_recordings(make, recorded):
    saved = {"recordings": str(recorded), "share": 0.5, "steps": [10, 20]}
    env = make(callbacks=[{"SavedGames": saved}, *PREPARING])
    begun = [env.reset(seed=seed)[1]["inventory"][0] for seed in range(30)]
    again = [env.reset(seed=seed)[1]["inventory"][0] for seed in range(30)]
    assert begun == again  # from the seed alone
    share = sum(stack["type"] == "dirt" for stack in begun) / 30
    assert 0.25 < share < 0.75


def test_a_game_that_cannot_be_restored_is_named_and_left_out(make, recorded, caplog):
    env = make(callbacks=[{"SavedGames": {"recordings": str(recorded), "steps": [10, 20]}}])
    first, last = sorted(recorded.rglob("*.game"))[1:]
    first.write_bytes(b"")
    for seed in range(9):
        env.reset(seed=seed)
    assert caplog.text.count("It is left out from now on") == 1 and "step 10" in caplog.text
    last.unlink()
    with pytest.raises(SnapshotError, match=r"no game can be restored. The last one: .*step 20"):
        env.reset(seed=1)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"recordings": "nowhere"}, "must be a folder with recordings; got 'nowhere'"),
        ({"share": 0}, "must be a number above 0, up to 1; got 0"),
        ({"steps": [5, 3]}, "must be two integers, the smaller first"),
        ({"steps": [21, 22]}, "must hold games saved after steps 21 to 22"),
    ],
)
def test_games_that_are_not_there_are_missed_before_anything_starts(recorded, changes, message):
    saved = {"recordings": str(recorded), **changes}
    with pytest.raises(InvalidOptionsError, match=message):
        MineStudioEnv.check_options({"callbacks": [{"SavedGames": saved}]})
    with pytest.raises(InvalidOptionsError, match="SavedGames: engine: minecraft has no snapshots"):
        options = {"engine": "minecraft", "callbacks": [{"SavedGames": str(recorded)}]}
        MineStudioEnv.check_options(options)
