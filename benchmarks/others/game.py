"""What the scripts of this folder share: the games, the same for all libraries, and their diary.

Games are those of `tuned_examples/`: the same frames, rewards and episodes. Every library but ours
gets them through `FlatSpaces`, one array and a `MultiDiscrete` action. Each game keeps a diary of
its episodes, whatever library plays it, so that no library's own statistics are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import yaml

from rllib_minestudio.env.callbacks import MinecraftCallback

EXAMPLES = Path(__file__).parents[2] / "tuned_examples"
TASKS = {"cow": "cow.yaml", "stray_cows": "stray_cows_from_scratch.yaml"}
GAMES = 32
"""Games that are played at a time."""
FOREVER_S = 10_000.0


def asked() -> argparse.Namespace:
    """Read what a script is asked for.

    Returns:
        `task`, a key of `TASKS`; `diary`, a folder; `seed`; `lr` and `entropy`, of the setting;
        `fault_after`, the steps of a game after which it fails once, and `fault`, how; `games`; and
        `gamma`, the task's, which all libraries have.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", choices=TASKS, default="cow")
    parser.add_argument("--diary", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--entropy", type=float, default=4e-3)
    parser.add_argument("--games", type=int, default=GAMES)
    parser.add_argument("--fault-after", type=int, default=None, metavar="STEPS")
    parser.add_argument("--fault", choices=["exit", "hang"], default="exit")
    request = parser.parse_args()
    request.gamma = configured(request.task)["gamma"]
    return request


def configured(task: str) -> dict[str, Any]:
    """Return the config of a task in `tuned_examples/`."""
    (experiment,) = yaml.safe_load((EXAMPLES / TASKS[task]).read_text()).values()
    config: dict[str, Any] = experiment["config"]
    return config


def game_options(request: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the environment, with the diary, and the fault if one is asked for."""
    options: dict[str, Any] = configured(request.task)["env_config"]
    options["callbacks"].append({"game.Diary": {"folder": str(request.diary)}})
    if request.fault_after is not None:
        fault = {"folder": str(request.diary), "after": request.fault_after, "kind": request.fault}
        options["callbacks"].append({"game.Fault": fault})
    return options


class Diary(MinecraftCallback):
    """Writes a line when an episode ends: when that was, its return and its steps.

    Each game of each process has a file of its own. The first reset writes a line without a return.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._file: Any = None
        self._return, self._steps = 0.0, 0

    def after_reset(self, sim: Any, obs: Any, info: Any) -> Any:
        """Begin an episode."""
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = f"{os.getpid()}-{time.monotonic_ns()}.jsonl"
            self._file = (self._folder / name).open("a", buffering=1)
            self._write(None)
        self._return, self._steps = 0.0, 0
        return obs, info

    def after_step(
        self, sim: Any, obs: Any, reward: float, terminated: bool, truncated: bool, info: Any
    ) -> Any:
        """Count a step, and write down an episode that has ended."""
        self._return += reward
        self._steps += 1
        if terminated or truncated:
            self._write(self._return)
        return obs, reward, terminated, truncated, info

    def _write(self, episode_return: float | None) -> None:
        self._file.write(json.dumps([time.time(), episode_return, self._steps]) + "\n")


class Fault(MinecraftCallback):
    """Fails once in a run, in whichever game is the first to have played so many steps.

    It ends its process, or hangs. A mere error would show nothing of the library that plays: the
    environment catches it, and begins a new game.
    """

    def __init__(self, folder: str, after: int, kind: str) -> None:
        self._mark, self._left, self._kind = Path(folder) / "failed", after, kind

    def after_step(
        self, sim: Any, obs: Any, reward: float, terminated: bool, truncated: bool, info: Any
    ) -> Any:
        """Fail if it is time to."""
        self._left -= 1
        if self._left == 0:
            try:
                self._mark.touch(exist_ok=False)
            except FileExistsError:
                return obs, reward, terminated, truncated, info
            if self._kind == "exit":
                os._exit(1)
            time.sleep(FOREVER_S)
        return obs, reward, terminated, truncated, info
