"""Tasks from files in the format of MineStudio's benchmark."""

import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.callbacks import build_callbacks
from rllib_minestudio.errors import InvalidOptionsError

IDLE = {"buttons": 0, "camera": 60}


@pytest.fixture
def task_file(tmp_path):
    def write(text):
        file = tmp_path / "hunt_a_cow.yaml"
        file.write_text(text)
        return str(file)

    return write


def test_a_benchmark_task_prepares_the_world_and_names_itself(task_file):
    path = task_file(
        "custom_init_commands:\n- /give @s minecraft:wooden_axe\n- /time set 6000\n"
        "defaults:\n- base\n- _self_\ntext: 'Hunt a cow.  '\nreference_video: hunt\n"
    )
    env = MineStudioEnv(obs_size=[64, 64], num_empty_frames=1, callbacks=[{"TaskFile": path}])
    _, info = env.reset(seed=1)
    assert (info["task"], info["task_text"]) == ("hunt_a_cow", "Hunt a cow.")
    assert "wooden_axe" in [stack["type"] for stack in info["inventory"].values()]
    assert env.step(IDLE)[-1]["task"] == "hunt_a_cow"


def test_everything_that_a_task_may_hold(task_file):
    path = task_file(
        "summon_mobs: [{name: cow, number: 2, range_x: [-3, 3], range_z: [-3, 3]}]\n"
        "biomes: [plains]\nrandom_tp_range: 100\ntime_limit: 2\ncommands: [/weather clear]\n"
    )
    env = MineStudioEnv(obs_size=[64, 64], num_empty_frames=1, callbacks=[{"TaskFile": path}])
    for _ in range(2):
        env.reset()
        assert len([mob for mob in env.backend.mobs_near(10) if mob["name"] == "cow"]) >= 2
        assert [env.step(IDLE)[3] for _ in range(2)] == [False, True]


def test_where_one_begins_what_one_holds_and_what_one_did(task_file):
    path = task_file(
        "spawn_positions: [{seed: 5, position: [100, 80, 7]}]\n"
        "init_inventory: [{slot: 3, type: oak_planks, quantity: '>63'}]\n"
        "use_prev_action: true\n"
    )
    env = MineStudioEnv(obs_size=[64, 64], num_empty_frames=1, callbacks=[{"TaskFile": path}])
    for _ in range(2):
        _, info = env.reset()
        place = info["player_pos"]
        assert (place["x"], place["z"]) == (100.5, 7.5)
        assert info["inventory"][3] == {"type": "oak_planks", "quantity": 64}
        assert not env.sim.obs["env_prev_action"]["jump"]
        env.step({"buttons": 2, "camera": 60})
        assert env.sim.obs["env_prev_action"]["jump"]
    without = task_file("use_prev_action: false")
    (task,) = build_callbacks([{"TaskFile": without}])
    assert [type(part).__name__ for part in task.callbacks] == ["TaskCallback"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("custom_init_command: []", "Did you mean 'custom_init_commands'"),
        ("- /give @s stick", "hunt_a_cow.yaml: it must be a mapping"),
        ("a: [", "cannot be read: it is not YAML"),
        ("commands: [7]", r"commands\[0\] must be one non-empty line"),
        ("time_limit: 0", "time_limit must be"),
        ("use_prev_action: yep", "use_prev_action must be true or false"),
        (
            "init_inventory: [{slot: 50, type: stick, quantity: 1}]",
            r"slot must be an integer from 0",
        ),
        ("spawn_positions: {seed: 1}", "spawn_positions must be a non-empty list"),
        ("name: ''", "name must not be empty"),
    ],
)
def test_a_file_with_a_mistake(task_file, text, message):
    with pytest.raises(InvalidOptionsError, match=message):
        build_callbacks([{"TaskFile": task_file(text)}])


def test_a_file_that_is_missing():
    with pytest.raises(InvalidOptionsError, match=r"no_such_task\.yaml cannot be read"):
        build_callbacks([{"TaskFile": "no_such_task.yaml"}])
