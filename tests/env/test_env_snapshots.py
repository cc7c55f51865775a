"""Episodes that begin in a saved game: its future, what callbacks make of it, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError, SnapshotError

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
