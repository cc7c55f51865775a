"""What `rllib benchmark run` is asked for, and how it is known again when it goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rllib_minestudio.benchmark.task import BenchmarkTask
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.evaluation.evaluation_summary import digest
from rllib_minestudio.option_checks import Problems, is_integer
from rllib_minestudio.plain_values import plain
from rllib_minestudio.small_files import read_json
from rllib_minestudio.whole_file import write_probe, write_whole

REQUEST_FILE = "request.json"
"""Says, from the first moment on, what a folder's results are results of."""

SMOKE_STEPS = 60
"""Steps of an episode with `--smoke`."""

LARGEST_RESULTS = 256 * 1024
"""Bytes that must be free before anything is played."""

_RANGES = {
    "episodes": (1, 1_000_000),
    "seed": (0, 2**31 - 1),
    "steps": (1, 10**9),
    "workers": (0, 10_000),
    "envs": (1, 10_000),
}


@dataclass(frozen=True)
class BenchmarkRequest:
    """What is to be played, how, and where the results go.

    Attributes:
        player: A checkpoint, an experiment file, one of `players.SCRIPTED`, or the
            `module:function` that makes an agent.
        suite: The name of a suite, or a folder of task files.
        out: Folder of the results.
        episodes: Per task.
        seed: What worlds and the player's random numbers derive from.
        steps: Cap of the tasks' time limits; None leaves them.
        tasks: Pattern of the tasks that are played; None plays all.
        overrides: `env_config.KEY=VALUE`, changes of the environment's options.
        deterministic: Whether a policy takes its most probable actions.
        smoke: Play one episode of `SMOKE_STEPS` per task, to see that everything runs.
        videos: Whether a success and a failure of each task are filmed.
        workers: Processes that play; 0 plays in this one.
        envs: Environments per process; a fixed number, as another one changes a policy's numbers
            in the last digit.
        gpus: GPUs per process; None as in the policy's training.
        agent_timeout_s: Seconds that an agent of somebody's own may take over an action.
        verbose: Show what Ray and its workers print.
    """

    player: str
    suite: str
    out: str
    episodes: int = 10
    seed: int = 0
    steps: int | None = None
    tasks: str | None = None
    overrides: Sequence[str] = ()
    deterministic: bool = False
    smoke: bool = False
    videos: bool = True
    workers: int = 0
    envs: int = 10
    gpus: float | None = None
    agent_timeout_s: float = 60.0
    verbose: bool = False

    def checked(self) -> BenchmarkRequest:
        """Return the request as it is carried out: `smoke` decides episodes, steps and envs.

        Raises:
            InvalidOptionsError: A number is out of bounds; lists all problems.
        """
        problems = Problems()
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is None and name == "steps":
                continue
            if not is_integer(value) or not least <= value <= most:
                problems.add(f"--{name}", value, f"must be an integer from {least} to {most}")
        for override in self.overrides:
            if override.removeprefix("config.").startswith("env_config.callbacks"):
                problems.messages.append(
                    f"--set {override}: a task brings its own callbacks; change a copy of its "
                    "file, in a folder of your own (--suite FOLDER)."
                )
        problems.raise_if_any()
        if not self.smoke:
            return self
        steps = SMOKE_STEPS if self.steps is None else min(SMOKE_STEPS, self.steps)
        return replace(self, episodes=1, steps=steps, envs=1)

    def facts(
        self,
        player: Mapping[str, Any],
        env_config: Mapping[str, Any],
        rules: int | None,
        tasks: Mapping[str, str],
    ) -> dict[str, Any]:
        """Describe what decides the results; neither the number of workers nor videos do.

        Args:
            player: Its identity.
            env_config: Options by which it sees the game.
            rules: The embedded engine's revision; None with the real game.
            tasks: Digest of each task that is chosen, by name.
        """
        facts: dict[str, Any] = {
            "suite": self.suite,
            "player": plain(dict(player)),
            **{name: getattr(self, name) for name in ("episodes", "seed", "steps", "envs")},
            "tasks": self.tasks,
            "smoke": self.smoke,
            "overrides": list(self.overrides),
            "env_config": plain(dict(env_config)),
            "rules": rules,
            "task_digests": dict(tasks),
        }
        return {**facts, "digest": digest(facts)}


def task_digest(task: BenchmarkTask, engine: str, rules: int | None) -> str:
    """Return a short name of everything that decides a task's worlds and what success is.

    How the player sees the game has no part in it, so that unlike players can be compared.

    Args:
        task: With the time limit that is played.
        engine: Which game.
        rules: The embedded engine's revision; None with the real game.
    """
    unseen = ("category", "because", "by_chance", "solution", "origin", "needs")
    facts = {name: value for name, value in asdict(task).items() if name not in unseen}
    return digest(plain({"task": facts, "engine": engine, "rules": rules}))


def claim_folder(folder: Path, facts: Mapping[str, Any]) -> None:
    """Make the results' folder, or find that it holds the beginning of the same results.

    Raises:
        InvalidOptionsError: It holds other results.
        MineStudioError: It cannot be read or written.
    """
    file = folder / REQUEST_FILE
    try:
        if file.is_file():
            before = dict(read_json(file))
            names = [name for name in {**before, **facts} if name != "digest"]
            changed = [name for name in names if before.get(name) != facts.get(name)]
            if changed:
                raise InvalidOptionsError(
                    f"{str(folder)!r} holds results that differ in {', '.join(changed)}: choose "
                    "another folder with --out, or give the options they were made with."
                )
        folder.mkdir(parents=True, exist_ok=True)
        write_probe(folder, LARGEST_RESULTS)
        write_whole(file, json.dumps(dict(facts), indent=1) + "\n")
    except InvalidOptionsError:
        raise
    except OSError as error:
        raise MineStudioError(
            f"{str(folder)!r} cannot be written to: {error.strerror}. Free space there, or choose "
            "another folder with --out."
        ) from error
    except (TypeError, ValueError) as error:
        raise MineStudioError(
            f"{str(file)!r} is damaged: {error}. Choose another folder with --out."
        ) from error
