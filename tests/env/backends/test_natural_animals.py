"""Natural animals: there by default, unless the task summons its own; then its own alone."""

import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.backends.voxel import VoxelBackend
from rllib_minestudio.env.callbacks import MinecraftCallback, SummonMobsCallback, summon_mobs
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.errors import InvalidOptionsError

COWS = {"name": "cow", "number": 3, "range_x": [-5, 5], "range_z": [-5, 5]}
FAST = {"FastReset": {"biomes": ["plains"], "random_tp_range": 10}}
PLAINS = {"obs_size": [32, 32], "num_empty_frames": 1, "preferred_spawn_biome": "plains"}


class Shepherd(MinecraftCallback):
    """A user's callback that brings animals."""

    summons_mobs = True

    def __init__(self, path="nowhere"):
        raise AssertionError("asked, but not built")


@pytest.mark.parametrize(
    ("callbacks", "summons"),
    [
        ([], False),
        ([FAST, {"Commands": ["/give @p stick"]}], False),
        ([{"SummonMobs": [COWS]}], True),
        ([{"SummonMobs": []}], False),
        ([SummonMobsCallback([COWS])], True),
        ([{"Commands": ["/time set day", "/summon minecraft:cow ~2 ~ ~"]}], True),
        ([{"Commands": ["execute as @p at @p run summon pig"]}], True),
        ([{"Commands": ["/give @p summoner"]}], False),
        ([{"Compose": {"callbacks": [FAST, {"SummonMobs": [COWS]}], "options": 1}}], True),
        ([f"{__name__}.Shepherd"], True),
        ([{f"{__name__}.Shepherd": {"path": "here"}}], True),
    ],
)  # fmt: skip
def test_who_summons(callbacks, summons):
    assert summon_mobs(callbacks) == summons


def animals(**options):
    """Animals within sight at the beginning of three episodes."""
    backend = VoxelBackend(EnvOptions.from_mapping({**PLAINS, **options}))
    counts = []
    for seed in range(3):
        backend.seed(seed)
        backend.reset()
        counts.append(len(backend.mobs_near(1000)))
    return counts


def test_the_option_decides_where_it_is_given():
    assert all(animals())
    assert animals() == animals(natural_animals=True)
    assert animals(natural_animals=False) == [0, 0, 0]
    summons = [{"SummonMobs": [COWS]}]
    assert animals(callbacks=summons) == [0, 0, 0]
    assert animals(callbacks=summons, natural_animals=True) == animals()


def test_a_task_has_its_own_animals_alone(cow_task):
    env = MineStudioEnv({**cow_task, "obs_size": [32, 32]})
    env.reset(seed=4)
    assert [mob["name"] for mob in env.sim.env.mobs_near(1000)] == ["cow"] * 10
    env.close()


def test_other_values_are_refused():
    with pytest.raises(InvalidOptionsError, match="natural_animals must be true, false or None"):
        EnvOptions.from_mapping({"natural_animals": "many"})
