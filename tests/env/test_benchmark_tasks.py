"""MineStudio's benchmark on the embedded engine, without MineStudio: every task file is played.

The files come with MineStudio's package; where that is not installed, a copy of its folder beside
the repository does, `../shared/data/minestudio_tasks`.
"""

import copy
import logging
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from rllib_minestudio.env import MineStudioEnv, simulator
from rllib_minestudio.env.backends.voxel import VoxelBackend
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.env.voxel.engine import VoxelEngine

STEPS = 100
FRAME = (16, 16)


def folder():
    """Where the task files are; None if nowhere."""
    beside = Path(__file__).parents[3] / "shared" / "data" / "minestudio_tasks"
    package = find_spec("minestudio")
    if beside.is_dir() or package is None:
        return beside if beside.is_dir() else None
    return Path(package.origin).parent / "benchmark" / "task_configs"


pytestmark = [
    pytest.mark.skipif(folder() is None, reason="the task files are not at hand"),
    pytest.mark.slow,
]


class Executed(NamedTuple):
    """A command, and what came of it.

    Attributes:
        text: The command.
        changed: Whether anything in the game is different after it.
    """

    text: str
    changed: bool


class Played(NamedTuple):
    """What a task was like.

    Attributes:
        name: The file's.
        commands: In order.
        log: Warnings.
        task: Name and words, as the last info says them.
    """

    name: str
    commands: list[Executed]
    log: list[str]
    task: tuple[str, str]


def contents(engine):
    """Everything that a command can change; effects count by what they do to the player."""
    state = engine._game.state
    inventory = state.player.inventory
    arrays = (
        state.world.blocks.view(np.uint64),
        state.player.records,
        inventory.item,
        inventory.quantity,
        state.mobs.records[: state.mobs.count],
        state.items.records[: state.items.count],
    )
    others = state.player.damage_bonus, "night_vision" in state.player.effects
    return arrays, (others, state.daytime, state.raining, state.rules)


def differ(before, after):
    (arrays, others), (arrays_after, others_after) = before, after
    return others != others_after or not all(map(np.array_equal, arrays, arrays_after))


def spied_on(engine, executed):
    """Have an engine note what its commands change."""
    execute = engine.execute

    def noting(command):
        if "weather" in command:
            execute("/weather rain")  # so that clearing up is a change
        before = copy.deepcopy(contents(engine))
        result = execute(command)
        executed.append(Executed(command, differ(before, contents(engine))))
        return result

    engine.execute = noting


def play(file, executed, log):
    """Play a task with random actions."""
    env = MineStudioEnv(
        obs_size=FRAME,
        render_mode=None,
        num_empty_frames=1,
        callbacks=[{"TaskFile": str(file)}],
    )
    env.action_space.seed(1)
    _, info = env.reset(seed=1)
    commands, warnings = list(executed), list(log)
    for _ in range(STEPS):
        obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert reward == 0.0 and not truncated and "engine_error" not in info
        if terminated:
            env.reset()
    assert obs in env.observation_space
    env.close()
    return Played(file.stem, commands, warnings, (info["task"], info["task_text"]))


@pytest.fixture(scope="module")
def tasks():
    """Every task, played in a process that cannot import MineStudio."""
    log, executed = [], []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: log.append(record.getMessage())
    backend = VoxelBackend(EnvOptions.from_mapping({"obs_size": FRAME}))
    spied_on(backend.engine, executed)

    def one_for_all(options):
        for told in (backend._complaints, executed, log):
            told.clear()
        return backend

    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in [name for name in sys.modules if name.startswith("minestudio.")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "minestudio", None)  # importing it raises
        monkeypatch.setattr(simulator, "make_backend", one_for_all)
        logger = logging.getLogger("rllib_minestudio")
        logger.addHandler(handler)
        try:
            return [play(file, executed, log) for file in sorted(folder().glob("*/*.yaml"))]
        finally:
            logger.removeHandler(handler)


def pattern(text):
    """A command as the log tells it once, whatever its numbers."""
    return re.sub(r"-?\d+(\.\d+)?", "#", text)


def named(command, log):
    """Whether a warning names a command."""
    return any(f"'{pattern(command)}'" in pattern(line).replace('\\"', '"') for line in log)


def test_all_of_them_are_played_and_name_themselves(tasks):
    assert len(tasks) == 153
    assert sum(len(task.commands) for task in tasks) == 672
    for task in tasks:
        assert task.task[0] == task.name and task.task[1]


def test_how_many_commands_are_executed(tasks):
    engine = VoxelEngine()
    results = []
    for task in tasks:
        engine.reset(0, "plains")
        results += [engine.execute(command.text) for command in task.commands]
    # The rest name fluids, fire, and mobs that it does not have, or what Minecraft 1.16 has not.
    assert sum(result.ok for result in results) == 613
    assert sum(bool(result.lacking) for result in results) == 139  # mostly items only carried here


def test_each_command_without_effect_is_named_in_the_log(tasks):
    idle = [
        (task, command.text) for task in tasks for command in task.commands if not command.changed
    ]
    assert len(idle) > 10
    assert [(task.name, text) for task, text in idle if not named(text, task.log)] == []


OBEYED = ("minecraft:silk_touch", "Potion:")
"""Data of commands that the engine obeys."""


def test_ignored_data_is_named_and_obeyed_data_is_not(tasks):
    with_data = [
        (task, command.text)
        for task in tasks
        for command in task.commands
        if "{" in command.text and command.changed
    ]
    assert len(with_data) >= 5
    obeyed = [text for task, text in with_data if not named(text, task.log)]
    assert obeyed == [text for _, text in with_data if any(tag in text for tag in OBEYED)]
    assert len(obeyed) == 4


def test_nothing_is_named_twice_nor_without_a_command(tasks):
    for task in tasks:
        assert len(set(map(pattern, task.log))) == len(task.log)
        causes = {pattern(command.text) for command in task.commands}
        for line in task.log:
            assert any(cause in pattern(line).replace('\\"', '"') for cause in causes), line
