"""Every task file of MineStudio's benchmark loads unchanged, and the game can be given it."""

from pathlib import Path

import pytest

from rllib_minestudio.env.callbacks import build_callbacks

minestudio = pytest.importorskip(
    "minestudio", reason="pip install --no-deps -r requirements-minecraft.txt"
)

FOLDER = Path(minestudio.__file__).parent / "benchmark" / "task_configs"
FILES = sorted(FOLDER.glob("*/*.yaml"))


def test_all_of_them_load():
    assert len(FILES) >= 150
    for file in FILES:
        name = f"minestudio:{file.parent.name}/{file.stem}"
        (task,) = build_callbacks([{"TaskFile": name}])
        assert task.name == file.stem
        assert task.text
        assert len(task.callbacks) == 2  # its commands, and its name


def test_one_is_played(make_env):
    env = make_env(callbacks=[{"TaskFile": "minestudio:hard/collect_wood"}], seed=1)
    _, info = env.reset()
    assert info["task"] == "collect_wood"
    assert "iron_axe" in {stack["type"] for stack in info["inventory"].values()}
