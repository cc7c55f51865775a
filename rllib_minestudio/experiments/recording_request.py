"""The options of `rllib record`.

Separate from `recording_order.py`, which carries the request out and imports Ray and torch.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from rllib_minestudio.evaluation.episode import LARGEST_SEED
from rllib_minestudio.experiments.evaluate_checkpoint import EvaluationRequest
from rllib_minestudio.experiments.play_task import PlayRequest
from rllib_minestudio.foundation.agent_names import HUNTER
from rllib_minestudio.foundation.options import MANY, Flag, like, option
from rllib_minestudio.foundation.recording_options import RecordingForm

NOVICE_STEPS = 300
"""Default of the most steps that a novice plays."""


@dataclass(frozen=True, kw_only=True)
class RecordingRequest:
    """A request for demonstrations: agent, task, number of episodes, and output folder."""

    task: Path = option(
        MISSING, "An experiment file with one experiment.", Flag("TASK", is_positional=True)
    )
    agent: str = option(HUNTER, "Who plays.", Flag("NAME|MODULE:FUNCTION"))
    prey: tuple[str, ...] = option(
        (),
        "What a hunter hunts where the task names no prey: cow, sheep, pig, chicken. Default: all.",
        Flag("ANIMAL", takes_several=True),
    )
    make: str | None = option(
        None,
        "What a toolmaker makes where the task does not say, stone_pickaxe for example. Default: "
        "iron_pickaxe.",
        Flag("ITEM"),
    )
    episodes: int = option(MISSING, "Number of episodes.", least=1, most=MANY)
    out: Path = option(MISSING, "Output folder.", Flag("DIR"))
    overrides: tuple[str, ...] = like(
        EvaluationRequest,
        "overrides",
        sentence="Change an option of the task's environment, or of the policy that is to learn "
        "from the recordings and decides how frames are made, by its dotted path: "
        "`env_config.callbacks.5.JudgeReset.time_limit=300`, `model.weights=PATH`.",
    )
    seed: int = like(PlayRequest, "seed", sentence="Seed of the first episode.", flag=Flag("SEED"))
    workers: int | None = like(
        EvaluationRequest,
        "workers",
        default=None,
        sentence="Processes that play. Default: one per CPU.",
        least=1,
    )
    format: str = like(RecordingForm, "format")
    crf: int = like(RecordingForm, "crf", default=0)
    snapshot_interval: int = like(RecordingForm, "snapshot_interval")
    novice: str | None = option(
        None,
        "A policy that plays the beginning of every episode until the agent takes over, such as a "
        "clone that is to learn to put its own mistakes right (DAgger); only the agent's steps are "
        "imitated.",
        Flag("POLICY"),
    )
    novice_steps: int | None = option(
        None,
        "Most steps that a novice plays, drawn for each episode. Default with --novice: "
        f"{NOVICE_STEPS}.",
        least=1,
        most=LARGEST_SEED,
    )
    trust: bool = like(EvaluationRequest, "trust")
    quiet: bool = like(EvaluationRequest, "quiet")
