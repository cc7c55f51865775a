"""Each native callback beside MineStudio's: two environments, one seed, the same actions.

Compared are observations, rewards, ends, infos, and every call that reached the game. MineStudio's
draw from Python's global generator; here they get one that draws as ours do, so that even what is
random has to agree.
"""

import inspect
import itertools
import json
import re
import sys

import numpy as np
import pytest
import yaml

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env import callbacks as ours
from rllib_minestudio.env.backends.minecraft.items import STACK_SIZES
from rllib_minestudio.env.callbacks.initial_state import allowed_quantities
from rllib_minestudio.env.callbacks.rewards import gate_score

pytest.importorskip("minestudio", reason="pip install --no-deps -r requirements-minecraft.txt")
av = pytest.importorskip("av")

NATIVE = (
    *("GateRewards", "HardReset", "InitInventory", "PrevAction", "Record", "SpeedTest", "Task"),
    "Voxels",
)
SHARED = (*NATIVE, "Commands", "FastReset", "JudgeReset", "Rewards", "SummonMobs")

MINED = {"buttons": 4, "camera": 60}
"""Agent tokens of the attack key."""


@pytest.fixture(scope="module")
def theirs():
    from minestudio.simulator import callbacks

    return callbacks


class Draws:
    """What MineStudio's callbacks use of `random`, drawn as ours draw."""

    def __init__(self):
        self.env = None

    @property
    def generator(self):
        return self.env.sim.np_random

    def choice(self, options):
        options = list(options)
        if all(isinstance(option, int) for option in options):
            options.sort()  # theirs come from sets
        return options[self.generator.integers(len(options))]

    def choices(self, options, weights, k):
        assert len(options) == 2 and k == 1
        return [options[0] if self.generator.random() < weights[0] else options[1]]


@pytest.fixture
def draws(theirs, monkeypatch):
    draws = Draws()
    for name in ("hard_reset", "init_inventory", "task"):
        module = sys.modules[f"minestudio.simulator.callbacks.{name}"]
        monkeypatch.setattr(module, "random", draws)
    return draws


class Twins:
    """An environment with native callbacks, and one with MineStudio's."""

    def __init__(self, draws, native, original, **options):
        options = {
            "obs_size": [32, 32],
            "render_size": [32, 32],
            "num_empty_frames": 1,
            "preferred_spawn_biome": "plains",
            **options,
        }
        self.envs = [MineStudioEnv(options, callbacks=each) for each in (native, original)]
        self.calls = [calls_to(env.backend) for env in self.envs]
        draws.env = self.envs[1]

    def reset(self, **options):
        results = [env.reset(**options) for env in self.envs]
        self.compare(results)
        return results[0]

    def step(self, action):
        results = [env.step(action) for env in self.envs]
        self.compare(results)
        return results[0]

    def compare(self, results):
        native, original = results
        np.testing.assert_array_equal(native[0]["image"], original[0]["image"])
        assert native[1:-1] == original[1:-1]
        assert without_task(native[-1]) == without_task(original[-1])
        mine, its = (dict(env.sim.obs) for env in self.envs)
        if "env_prev_action" in its:  # ours has all keys in every step, not only after resets
            its["env_prev_action"] = {"drop": 0, **its["env_prev_action"]}
        mine.pop("task_text", None)  # ours have the text in every step
        np.testing.assert_equal(mine, its)
        assert self.calls[0] == self.calls[1]

    def close(self):
        for env in self.envs:
            env.close()


def without_task(info):
    """Ours tell the task in the info, too."""
    return {key: value for key, value in info.items() if key not in ("task", "task_text")}


def calls_to(backend):
    """Note what reaches the game, without what does nothing."""
    calls = []
    step, seed, reset = backend.step, backend.seed, backend.reset

    def noting_step(action):
        said = {key: np.asarray(value).tolist() for key, value in action.items()}
        said = {key: value for key, value in said.items() if value not in (0, [0, 0])}
        if "chat" in said:  # the same slot, unless another one is in hand
            said["chat"] = said["chat"].replace("weapon.mainhand", "hotbar.0")
        calls.append(said)
        return step(action)

    def noting_seed(value):
        calls.append(("seed", value))
        seed(value)

    def noting_reset():
        calls.append("reset")
        return reset()

    backend.step, backend.seed, backend.reset = noting_step, noting_seed, noting_reset
    return calls


@pytest.mark.parametrize("name", SHARED)
def test_the_arguments_are_minestudios(theirs, name):
    native, original = (
        inspect.signature(getattr(package, f"{name}Callback")).parameters.values()
        for package in (ours, theirs)
    )
    original = [each for each in original if each.kind != each.VAR_KEYWORD]
    native, own = list(native)[: len(original)], list(native)[len(original) :]
    assert [each.name for each in native] == [each.name for each in original]
    assert all(each.default is not each.empty for each in own)
    for mine, its in zip(native, original, strict=True):
        default = tuple(its.default) if isinstance(its.default, list) else its.default
        assert mine.default == default, mine.name


class Builds:
    """Places or removes a block somewhere near (0, 0, 0) of a portal in each step."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.frame = [
            *itertools.product(range(4), (0, 4)),
            *itertools.product((0, 3), range(1, 4)),
            *itertools.product((1, 2), range(1, 4)),
        ]

    def before_step(self, sim, action):
        across, up = self.frame[self.random.integers(len(self.frame))]
        block = "obsidian" if self.random.random() < 0.85 else "air"
        axis = (
            f"~{2 + across} ~{up} ~2" if self.random.random() < 0.9 else f"~2 ~{up} ~{2 + across}"
        )
        return {**action, "chat": f"/setblock {axis} {block}"}


@pytest.mark.parametrize("box", [None, [-2, 4, -1, 4, -1, 2]])
def test_gate_rewards(theirs, draws, box):
    arguments = () if box is None else (box,)
    native, original = (
        [Builds(3), package.GateRewardsCallback(), package.VoxelsCallback(*arguments)]
        for package in (ours, theirs)
    )
    twins = Twins(draws, native, original)
    twins.reset(seed=2)
    rewards = [twins.step({"buttons": 0, "camera": 60})[1] for _ in range(60)]
    assert max(rewards) > 0.8 and min(rewards) < -0.8
    twins.reset()
    twins.step(MINED)


def test_scores_of_random_obsidian(theirs):
    original = theirs.GateRewardsCallback()
    random = np.random.default_rng(5)
    scores = set()
    for density in (0.05, 0.3, 0.6, 0.9):
        for _ in range(10):
            places = [
                place
                for place in itertools.product(range(5), range(6), range(5))
                if random.random() < density
            ]
            blocks = [
                {"type": kind, "x": x - 2, "y": y + 60, "z": z}
                for x, y, z in places
                for kind in [random.choice(["obsidian", "dirt", "crying_obsidian"])]
            ]
            score = gate_score(blocks)
            assert score == original.gate_reward({"voxels": blocks})
            scores.add(score)
    assert len(scores) > 20


def test_hard_reset(theirs, draws):
    spawns = [
        {"seed": seed, "position": [seed % 999, 90, -7.5]} for seed in (3, 4, 19961103, -(2**40))
    ]
    native, original = ([package.HardResetCallback(spawns)] for package in (ours, theirs))
    twins = Twins(draws, native, original)
    first = twins.reset(seed=1)[1]["player_pos"]
    places = [twins.reset()[1]["player_pos"]["x"] for _ in range(4)]
    assert first["z"] == -7.5 and len({first["x"], *places}) > 1
    assert twins.calls[0].count("reset") == 5


@pytest.mark.parametrize("after", [False, True])
def test_hard_reset_and_fast_reset_in_either_order(theirs, draws, after):
    fast = ours.FastResetCallback(["plains"], 0)
    spawns = [{"seed": 5, "position": [33, 80, 44]}]
    native, original = (
        [fast, package.HardResetCallback(spawns)][:: -1 if after else 1]
        for package in (ours, theirs)
    )
    twins = Twins(draws, native, original)
    twins.reset(seed=1)
    twins.reset()
    assert twins.calls[0].count("reset") == (1 if after else 2)


QUANTITIES = ["random", ">2", "<12,>10", ">=5, <=9", "==7", "<3", 5, 64]


@pytest.mark.parametrize("level", [[0], [2, 5], "one", "easy", "hard"])
def test_init_inventory(theirs, draws, monkeypatch, level):
    module = sys.modules["minestudio.simulator.callbacks.init_inventory"]
    monkeypatch.setattr(module, "MIN_ITEMS_NUM", 1)  # 0 is what the game refuses
    entries = [
        {"slot": slot, "type": "oak_planks", "quantity": quantity}
        for slot, quantity in zip(
            (0, 3, "8", 9, 35, "random", 7, "random"), QUANTITIES, strict=True
        )
    ]
    native, original = (package.InitInventoryCallback(entries, level) for package in (ours, theirs))
    twins = Twins(draws, [native], [original])
    original.items_names = twins.envs[0].backend.item_names()
    for i in range(4):
        _, info = twins.reset(**({"seed": 7} if i == 0 else {}))
    stacks = info["inventory"]
    assert stacks[3]["quantity"] > 2 and stacks[8] == {"type": "oak_planks", "quantity": 11}


def test_init_inventory_of_what_is_worn(theirs, draws):
    entries = [
        {"slot": slot, "type": name, "quantity": 1}
        for slot, name in ((40, "stone"), (39, "iron_helmet"), (36, "iron_boots"))
    ]
    native, original = ([package.InitInventoryCallback(entries)] for package in (ours, theirs))
    twins = Twins(draws, native, original)
    for env in twins.envs:
        env.reset(seed=7)
    # Theirs looks for worn items in the inventory, and waits in vain.
    mine, its = ([call["chat"] for call in calls if "chat" in call] for calls in twins.calls)
    assert mine == its and len(mine) == 3
    assert len(twins.calls[1]) == len(twins.calls[0]) + 2 * len(entries) - 1
    mine, its = (env.sim.info["equipped_items"] for env in twins.envs)
    assert mine == its and mine["head"]["type"] == "iron_helmet"


def test_quantities(theirs, draws, monkeypatch):
    module = sys.modules["minestudio.simulator.callbacks.init_inventory"]
    monkeypatch.setattr(module, "MIN_ITEMS_NUM", 1)
    offered = []
    monkeypatch.setattr(draws, "choice", lambda options: offered.append(options) or 1)
    monkeypatch.setattr(draws, "choices", lambda *_, **__: [False])
    parse = theirs.InitInventoryCallback([])._item_quantity_parser
    for size in (1, 16, 64):
        for text in ("random", ">0", "<2", ">=1,<=1", "== 1", "<60", ">0,>3", ">=2,<12", "==13"):
            allowed = allowed_quantities(text, size)
            offered.clear()
            parse(text, size)
            assert [sorted(options) for options in offered] == ([allowed] if allowed else [])


def test_the_items_are_minecrafts(theirs):
    import minecraft_data

    items = minecraft_data("1.16").items_name
    sizes = {name: int(item["stackSize"]) for name, item in items.items()}
    # MineStudio's table is that of 1.16.1; the game is 1.16.5.
    assert {**sizes, "piglin_brute_spawn_egg": 64} == STACK_SIZES


@pytest.mark.parametrize("action_type", ["agent", "env"])
def test_what_is_added_to_the_observation(theirs, draws, action_type, capsys):
    tasks = [{"name": name, "text": f"{name} it", "level": 3} for name in ("dig", "chop", "hunt")]
    native, original = (
        [
            ours.MaskActionsCallback(jump=0),
            package.PrevActionCallback(),
            package.TaskCallback(tasks),
            package.SpeedTestCallback(4),
        ]
        for package in (ours, theirs)
    )
    twins = Twins(draws, native, original, action_type=action_type)
    space = twins.envs[0].action_space
    space.seed(3)
    seen = set()
    for i in range(4):
        twins.reset(**({"seed": 9} if i == 0 else {}))
        seen.add(twins.envs[0].sim.obs["task"]["name"])
        for _ in range(5):
            twins.step(space.sample())
            told = twins.envs[0].sim.obs["env_prev_action"]
            assert told["jump"] == 0
    assert len(seen) > 1
    assert capsys.readouterr().out.count("SpeedTest: ") == 5


@pytest.mark.parametrize("frame_type", ["pov", "obs"])
def test_recordings(theirs, draws, frame_type, tmp_path):
    def record(package, folder):
        return package.RecordCallback(
            str(tmp_path / folder),
            frame_type=frame_type,
            record_actions=True,
            # Theirs would write every frame into the JSON.
            record_infos=frame_type == "pov",
            record_origin_observation=True,
        )

    native, original = (
        [record(package, folder)] for package, folder in ((ours, "native"), (theirs, "original"))
    )
    twins = Twins(draws, native, original)
    twins.envs[0].action_space.seed(3)
    for episode in range(2):
        twins.reset(seed=episode)
        for _ in range(5):
            twins.step(twins.envs[0].action_space.sample())
    twins.close()
    native, original = (
        {file.name: file for file in (tmp_path / folder).iterdir()}
        for folder in ("native", "original")
    )
    assert set(native) == set(original) and len(native) == (8 if frame_type == "pov" else 6)
    for name, file in native.items():
        if file.suffix == ".json":
            assert len(json.loads(file.read_text())) == 6
            assert json.loads(file.read_text()) == json.loads(original[name].read_text())
        elif file.suffix == ".npy":
            np.testing.assert_array_equal(np.load(file), np.load(original[name]))
        else:
            mine, its = frames(file), frames(original[name])
            assert mine.shape == its.shape == (6, 32, 32, 3)
            assert np.abs(mine.astype(float) - its).mean() < 6


def frames(file):
    with av.open(str(file)) as container:
        assert container.streams.video[0].average_rate == 20
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def in_numbers(calls):
    """Calls with "~2" where SummonMobs says "~2.000000"."""
    return [re.sub(r"\.0+\b", "", str(call)) for call in calls]


def test_a_task_file(theirs, draws, tmp_path):
    task = {
        "spawn_positions": [{"seed": 5, "position": [100, 80, 7]}],
        "summon_mobs": [{"name": "cow", "number": 2, "range_x": [2, 2], "range_z": [3, 3]}],
        "commands": ["/time set 6000", "/give @p minecraft:stone 3"],
        "init_inventory": [{"slot": 5, "type": "stone", "quantity": 2}],
        "use_prev_action": True,
    }
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(task))
    original = theirs.load_callbacks_from_config(task)
    assert len(original) == len(task)
    twins = Twins(draws, [{"TaskFile": str(file)}], original)
    for env in twins.envs:
        env.reset(seed=1)
    mine, its = map(in_numbers, twins.calls)
    assert mine == its
    mine, its = (env.sim.info for env in twins.envs)
    for key in ("inventory", "player_pos", "location_stats"):
        assert mine[key] == its[key]
    assert "env_prev_action" in twins.envs[0].sim.obs
