"""The request of `rllib benchmark run`, and its identity, by which an interrupted run continues.

Slow imports are deferred to keep `rllib benchmark run --help`, which lists the options, fast.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.experiments.evaluate_checkpoint import EvaluationRequest
from rllib_minestudio.foundation.files import SmallFileError, require_room, write_whole
from rllib_minestudio.foundation.options import Flag, Problems, like, option, option_problems
from rllib_minestudio.foundation.values import digest, plain

if TYPE_CHECKING:
    from rllib_minestudio.benchmark.task import BenchmarkTask

REQUEST_FILE = "request.json"
"""File with the identity of a folder's results, written before anything is played."""

SMOKE_STEPS = 60
"""Most steps of an episode with `--smoke`."""

LARGEST_RESULTS = 256 * 1024
"""Bytes that must be free at the start."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkRequest:
    """A request to play a benchmark: player, tasks, options, and output folder."""

    player: str = option(MISSING, "Who plays, see above.", Flag("PLAYER", is_positional=True))
    suite: str = option(MISSING, "A suite's name, or a folder of task files.", Flag("SUITE"))
    tasks: str | None = option(
        None, 'Only tasks whose names fit, such as "collect_*".', Flag("PATTERN")
    )
    episodes: int = like(EvaluationOptions, "episodes", default=10, sentence="Episodes per task.")
    seed: int = like(EvaluationOptions, "seed", sentence="Seed of the worlds and the player.")
    steps: int | None = option(
        None, "Cap of the tasks' time limits. Default: none.", least=1, most=10**9
    )
    smoke: bool = option(
        False,
        f"One episode of {SMOKE_STEPS} steps per task, to see that everything runs.",
    )
    out: str = option("", "Where the results go. Default: a new folder.", Flag("DIR"))
    no_videos: bool = option(
        False,
        "Do not film a success and a failure of each task, which takes an eighth of the time.",
    )
    deterministic: bool = like(EvaluationOptions, "deterministic")
    trust: bool = like(EvaluationRequest, "trust")
    workers: int = like(
        EvaluationRequest,
        "workers",
        sentence="Processes that play; 0 plays in this one. Their number changes no result.",
    )
    envs: int = like(
        EvaluationRequest,
        "envs",
        default=10,
        sentence="Environments per process; another number changes about one of a policy's actions "
        "in ten thousand.",
    )
    gpus: float | None = like(EvaluationRequest, "gpus", sentence="GPUs per process.")
    agent_timeout_s: float = like(EvaluationRequest, "agent_timeout_s")
    overrides: tuple[str, ...] = like(
        EvaluationRequest,
        "overrides",
        sentence="Change how the player sees the game, or a policy's options, by their dotted "
        "paths: `env_config.engine=minecraft`, `model.weights=PATH` of an experiment file, "
        "`model.temperature=0.8` of a checkpoint.",
    )
    verbose: bool = like(EvaluationRequest, "verbose")
    quiet: bool = like(EvaluationRequest, "quiet")

    def checked(self) -> BenchmarkRequest:
        """Validate the request and return it as carried out; `smoke` sets episodes, steps and envs.

        Raises:
            InvalidOptionsError: An option is wrong; lists all problems.
        """
        problems = Problems()
        problems.messages += option_problems(BenchmarkRequest, vars(self))
        for override in self.overrides:
            if override.removeprefix("config.").startswith("env_config.callbacks"):
                problems.messages.append(
                    f"--set {override}: a task brings its own callbacks; change a copy of its "
                    "file, in a folder of your own (--suite FOLDER)."
                )
        problems.raise_if_any()
        now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        request = replace(self, out=self.out or f"evaluations/benchmark_{now}")
        if not self.smoke:
            return request
        steps = SMOKE_STEPS if self.steps is None else min(SMOKE_STEPS, self.steps)
        return replace(request, episodes=1, steps=steps, envs=1)

    def facts(
        self,
        player: Mapping[str, Any],
        env_config: Mapping[str, Any],
        rules: int | None,
        tasks: Mapping[str, str],
    ) -> dict[str, Any]:
        """Describe everything that determines the results, which workers and videos do not.

        Args:
            player: Identity of the player.
            env_config: Options of its environment.
            rules: The embedded engine's revision; None with the real game.
            tasks: Chosen task -> digest.
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
    """Return a digest of everything that determines a task's worlds and success.

    The player's observations are not part of it, so different players can be compared.

    Args:
        task: The task, with the time limit that is played.
        engine: `voxel` or `minecraft`.
        rules: The embedded engine's revision; None with the real game.
    """
    unseen = ("category", "because", "by_chance", "solution", "origin", "needs")
    facts = {name: value for name, value in asdict(task).items() if name not in unseen}
    return digest(plain({"task": facts, "engine": engine, "rules": rules}))


def claim_folder(folder: Path, facts: Mapping[str, Any]) -> None:
    """Create the results' folder, or check that it contains results of the same request.

    Raises:
        InvalidOptionsError: It contains other results.
        MineStudioError: It cannot be read or written.
    """
    file = folder / REQUEST_FILE
    try:
        if file.is_file():
            before = _read_request(file)
            names = [name for name in {**before, **facts} if name != "digest"]
            changed = [name for name in names if before.get(name) != facts.get(name)]
            if changed:
                raise InvalidOptionsError(
                    f"{str(folder)!r} holds results that differ in {', '.join(changed)}: choose "
                    "another folder with --out, or give the options they were made with."
                )
        require_room(folder, LARGEST_RESULTS)
        write_whole(file, json.dumps(dict(facts), indent=1) + "\n")
    except OSError as error:
        raise MineStudioError(
            f"{str(folder)!r} cannot be written to: {error.strerror}. Free space there, or choose "
            "another folder with --out."
        ) from error
    except SmallFileError as error:
        raise MineStudioError(
            f"{str(file)!r} is damaged: {error}. Choose another folder with --out."
        ) from error


def _read_request(file: Path) -> dict[str, Any]:
    """Return the facts of the request whose results a folder holds.

    Raises:
        OSError: The file cannot be read.
        SmallFileError: It is damaged.
    """
    from rllib_minestudio.benchmark.results_file import RequestDocument
    from rllib_minestudio.foundation.documents import given, read_document

    return given(read_document(file, RequestDocument))
