"""Does the prior pay, and does the KL term keep it? Trains every arm, evaluates, writes the table.

    python benchmarks/learning.py [--steps N] [--seeds S ...] [--arms NAME ...] [--out DIR] ...
    python benchmarks/learning.py --report [--docs] [--arms NAME ...] [--out DIR]

Every arm trains on the cow task for the same number of environment steps, then plays episodes of
three tasks, the same as the other arms: the cows that it trained on, on other seeds; sheep among
the cows, which the demonstrations behind the prior leave alone; and no animal at all, where they
look around and walk on. Nothing in the reward asks for the last two; `--tasks cows` leaves them
out. A cell is what a user would type, `rllib train file` and `rllib evaluate`, and its results stay
below --out: the same command goes on where it was interrupted. The table and the plot come from
what lies there; `--docs` writes the plot into docs/, too, whose results.md has the table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from learning_report import report

ROOT = Path(__file__).parents[1]
EXAMPLES, DOCS = ROOT / "tuned_examples", ROOT / "docs"
FROM_PRIOR = EXAMPLES / "cow_from_prior.yaml"
SCRATCH = EXAMPLES / "cow_vpt.yaml"
FIRST_EVALUATION_SEED = 1_000_000
MOBS = "callbacks.0.SummonMobs.mobs"
REWARD = "callbacks.2.Rewards.reward_cfg.0"
AROUND = "range_x: [-5, 5], range_z: [-5, 5]"
TASKS = {
    "cows": (),
    "sheep": (
        f"{MOBS}=[{{name: cow, number: 10, {AROUND}}}, {{name: sheep, number: 5, {AROUND}}}]",
        f"{REWARD}.objects=[sheep]",
    ),
    "empty": (
        f"{MOBS}=[]",
        f"{REWARD}.event=custom",
        f"{REWARD}.objects=[walk_one_cm, sprint_one_cm]",
        f"{REWARD}.reward=0.01",
        f"{REWARD}.max_reward_times=1000000",
    ),
}
"""What is evaluated: how the environment differs from the one trained in. The return counts cows,
sheep and metres."""

COMMON = (
    "num_cpus_for_main_process=1",
    "summary.random_policy_episodes=0",
    "summary.video_episodes=0",
    "checkpoint_config.save_interval=0",
    "metrics_num_episodes_for_smoothing=60",
)
ASYNCHRONOUS = ("num_env_runners=1",)


class Arm(NamedTuple):
    """A way to train: an experiment file, and what is changed in it."""

    file: Path
    changes: tuple[str, ...] = ()
    trains: bool = True


NO_KL = ("prior=null", "kl_coeff=0.0")
MINESTUDIO_KL = ("kl_coeff=0.2", "kl_decay=0.9995")
FADING_KL = ("kl_coeff=0.2", "kl_decay=0.98")
NO_WARMUP = "vf_warmup_iterations=0"
CONSTANT = "lr_annealing_iterations=null"
SMALL_STEPS, LARGE_STEPS = ("lr=3e-4", CONSTANT), ("lr=1e-3", CONSTANT)

ARMS = {
    "random": Arm(SCRATCH, trains=False),
    "prior alone": Arm(FROM_PRIOR, trains=False),
    "scratch": Arm(SCRATCH),
    "prior, no KL": Arm(FROM_PRIOR, (*NO_KL, NO_WARMUP)),
    "prior, no KL, value warmup": Arm(FROM_PRIOR, NO_KL),
    "prior, KL": Arm(FROM_PRIOR, (*MINESTUDIO_KL, NO_WARMUP)),
    "prior, KL, value warmup": Arm(FROM_PRIOR, MINESTUDIO_KL),
    "prior, fading KL, value warmup": Arm(FROM_PRIOR),
    "staleness 0": Arm(FROM_PRIOR, (*ASYNCHRONOUS, "replay_buffer.max_staleness=0")),
    "staleness 2": Arm(FROM_PRIOR, (*ASYNCHRONOUS, "replay_buffer.max_staleness=2")),
    "staleness 8": Arm(FROM_PRIOR, (*ASYNCHRONOUS, "replay_buffer.max_staleness=8")),
    "small steps, no KL": Arm(FROM_PRIOR, (*SMALL_STEPS, *NO_KL, NO_WARMUP)),
    "small steps, KL, value warmup": Arm(FROM_PRIOR, (*SMALL_STEPS, *MINESTUDIO_KL)),
    "small steps, fading KL, value warmup": Arm(FROM_PRIOR, (*SMALL_STEPS, *FADING_KL)),
    "large steps, no KL, value warmup": Arm(FROM_PRIOR, (*LARGE_STEPS, *NO_KL)),
    "large steps, fading KL, value warmup": Arm(FROM_PRIOR, (*LARGE_STEPS, *FADING_KL)),
}
"""Random: the network before it learns anything. KL: the term counts 0.2, and 0.9995 times as much
after every iteration of 2,048 steps, as MineStudio's; where it fades, it does as the file says, or,
at constant steps, 0.98 times: half after 70,000 steps. Staleness: one env runner plays while the
learner trains; fragments older than the limit, in updates, are thrown away. The other arms play and
learn in turns, where nothing gets stale. Small and large steps: the learning rate does not fall but
stays at 3e-4 or 1e-3."""

PLOTTED = (
    "random",
    "prior alone",
    "scratch",
    "prior, no KL",
    "prior, no KL, value warmup",
    "prior, KL",
    "prior, KL, value warmup",
    "prior, fading KL, value warmup",
)
"""More curves than these cannot be told apart."""


def main() -> None:
    """Run the cells that are missing, then print the table and write it with the plot."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=100_000, help="of training, per cell")
    parser.add_argument("--episodes", type=int, default=40, help="evaluated, per cell and task")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time, of one core each")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS))
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--out", type=Path, default=Path("results/learning"))
    parser.add_argument("--report", action="store_true", help="only read what lies below --out")
    parser.add_argument("--docs", action="store_true", help="write the plot into docs/, too")
    arguments = parser.parse_args()
    if not arguments.report:
        with ThreadPoolExecutor(arguments.jobs) as pool:
            cells = [
                pool.submit(
                    run,
                    name,
                    seed,
                    steps=arguments.steps,
                    episodes=arguments.episodes,
                    tasks=arguments.tasks,
                    out=arguments.out,
                )
                for seed in arguments.seeds
                for name in arguments.arms
            ]
            for cell in cells:
                cell.result()
    found = {name: cell_folder(arguments.out, name, 0).parent for name in arguments.arms}
    texts = {name: described(ARMS[name]) for name in arguments.arms}
    report(found, texts, PLOTTED, arguments.out, DOCS if arguments.docs else None)


def run(
    name: str, seed: int, *, steps: int, episodes: int, tasks: Sequence[str], out: Path
) -> None:
    """Train one arm with one seed, and evaluate what came of it; skip what is there already."""
    arm = ARMS[name]
    folder = cell_folder(out, name, seed)
    policy = arm.file
    if arm.trains:
        if not (folder / "trained").exists():
            changes = (f"seed={seed}", *COMMON, *arm.changes)
            words = [word for change in changes for word in ("--set", change)]
            stops = (f"num_env_steps_sampled_lifetime={steps}", "time_total_s=36000")
            words += [word for stop in stops for word in ("--stop", stop)]
            rllib("train", "file", str(arm.file), *words, "--out", str(folder / "training"))
            (folder / "trained").touch()
        (summary,) = folder.glob("training/*/*/summary.json")
        policy = Path(json.loads(summary.read_text())["best"]["checkpoint"])
    for task in tasks:
        if not (folder / task / "summary.json").exists():
            rllib(
                *("evaluate", str(policy), "--out", str(folder / task)),
                *("--episodes", str(episodes), "--envs", str(episodes)),
                *("--seed", str(FIRST_EVALUATION_SEED + seed * episodes)),
                *(word for change in TASKS[task] for word in ("--set", change)),
            )


def rllib(*words: str) -> None:
    """Run the command, showing it and what it prints.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    print("+ rllib", *words, flush=True)
    subprocess.run([sys.executable, "-m", "rllib_minestudio.cli.main", *words], check=True)


def described(arm: Arm) -> str:
    """An arm in the words of a command."""
    words = [arm.file.name, *(f"--set '{change}'" for change in arm.changes)]
    return f"`{' '.join(words)}`" + ("" if arm.trains else ", not trained")


def cell_folder(out: Path, name: str, seed: int) -> Path:
    """Where a cell's results lie."""
    return out / name.replace(", ", "-").replace(" ", "_") / f"seed_{seed}"


if __name__ == "__main__":
    main()
