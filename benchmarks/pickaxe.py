"""A stone pickaxe: what do prior and KL term gain where random play gets nowhere?

    python benchmarks/pickaxe.py tune [--jobs N] [--arms NAME ...]
    python benchmarks/pickaxe.py train [--jobs N] [--arms NAME ...] [--seeds S ...]
    python benchmarks/pickaxe.py report [--docs]

`tune` trains every arm with the same settings of learning rate, value warmup and entropy, for a
part of the steps and from one seed, and evaluates each on worlds of its own. `train` takes each
arm's best setting, trains it from every seed and evaluates its averaged weights on worlds that
neither the demonstrations nor `tune` saw. `report` writes tables and the plot; `--docs` writes the
plot into docs/, too, whose results.md has the main table. A cell is what a user would type,
`rllib train file` and `rllib benchmark run`, whose results stay below --out. What the report needs
of a finished cell is a small file below --cells, with which another checkout goes on, too: the same
command plays only what is missing. To begin anew, give another folder.
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

from pickaxe_report import Cell, cell_name, report, score_of

ROOT = Path(__file__).parents[1]
CELLS = Path(__file__).with_name("pickaxe_cells")
EXPERIMENT = ROOT / "tuned_examples" / "stone_pickaxe.yaml"
NO_KL = ("prior=null", "kl_coeff=0.0")
ARMS: dict[str, tuple[str, ...]] = {
    "KL": (),
    "no KL": NO_KL,
    "scratch": (*NO_KL, "model.weights=null"),
}
"""How training differs from the file."""

SETTINGS: dict[str, tuple[str, ...]] = {
    "1e-4": ("lr=1e-4", "vf_warmup_iterations=5", "entropy_coeff=0.0"),
    "3e-4": ("lr=3e-4", "vf_warmup_iterations=5", "entropy_coeff=0.0"),
    "3e-4, no warmup": ("lr=3e-4", "vf_warmup_iterations=0", "entropy_coeff=0.0"),
    "3e-4, entropy": ("lr=3e-4", "vf_warmup_iterations=5", "entropy_coeff=1e-3"),
    "1e-3": ("lr=1e-3", "vf_warmup_iterations=5", "entropy_coeff=0.0"),
}
"""What every arm is tuned over."""

ABLATIONS: dict[str, tuple[str, ...]] = {
    "KL, no value warmup": ("vf_warmup_iterations=0",),
}
"""The arm KL at its best setting, but for one thing."""

COMMON = (
    "num_cpus_for_main_process=1",
    "summary.random_policy_episodes=0",
    "summary.video_episodes=0",
    "checkpoint_config.save_interval=10",
    "metrics_num_episodes_for_smoothing=100",
)
AVERAGE = "policy_average"
"""What `ema_decay` keeps beside the newest weights, and `train` evaluates. The trainings of `tune`
are shorter than what it averages over, so that those are compared by the newest weights."""

TUNING_SEED, TUNING_WORLDS, HELD_OUT_WORLDS = 100, 1_000, 3_000
"""The last two are seeds of `rllib benchmark run`, from which it draws those of the worlds."""


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("phase", choices=["tune", "train", "report"])
    parser.add_argument("--tuning-steps", type=int, default=163_840, help="per setting")
    parser.add_argument("--steps", type=int, default=786_432, help="of training, per seed")
    parser.add_argument("--episodes", type=int, default=100, help="evaluated, per cell")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time, of one core each")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=[*ARMS, *ABLATIONS])
    parser.add_argument("--out", type=Path, default=Path("results/pickaxe"))
    parser.add_argument("--cells", type=Path, default=CELLS, help="what is known of each cell")
    parser.add_argument("--docs", action="store_true", help="write the plot into docs/, too")
    arguments = parser.parse_args()
    if arguments.phase == "report":
        report(
            arguments.cells, described(), arguments.out, (ROOT / "docs") if arguments.docs else None
        )
        return
    places = Places(arguments.out, arguments.cells)
    cells: list[tuple[str, Sequence[str], int, int]] = []
    if arguments.phase == "tune":
        for arm in arguments.arms:
            for name, setting in SETTINGS.items():
                words = (*ARMS[arm], *setting, f"seed={TUNING_SEED}")
                cells.append((cell_name("tune", arm, name), words, arguments.tuning_steps, 30))
    else:
        cells.append(("prior", (), 0, arguments.episodes))
        for seed in arguments.seeds:
            for arm in arguments.arms:
                words = (*chosen(places.cells, arm), f"seed={seed}")
                name = cell_name("train", arm, f"seed {seed}")
                cells.append((name, words, arguments.steps, arguments.episodes))
    is_tuning = arguments.phase == "tune"
    worlds, weights = (TUNING_WORLDS, "") if is_tuning else (HELD_OUT_WORLDS, AVERAGE)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for done in [pool.submit(run, places, *given, worlds, weights) for given in cells]:
            done.result()


class Places(NamedTuple):
    """Where results go: everything, and what is kept of it."""

    out: Path
    cells: Path


def chosen(cells: Path, arm: str) -> tuple[str, ...]:
    """Return an arm's changes with its best setting; an ablation has that of the arm KL.

    Raises:
        SystemExit: The arm is not tuned completely.
    """
    tuned = arm if arm in ARMS else "KL"
    files = {name: cells / f"{cell_name('tune', tuned, name)}.json" for name in SETTINGS}
    missing = [name for name, file in files.items() if not file.exists()]
    if missing:
        raise SystemExit(f"tune {tuned!r} first; missing: {', '.join(missing)}")
    best = max(files, key=lambda name: score_of(files[name]))
    return (*ARMS[tuned], *SETTINGS[best], *ABLATIONS.get(arm, ()))


def run(
    places: Places,
    name: str,
    changes: Sequence[str],
    steps: int,
    episodes: int,
    worlds: int,
    weights: str,
) -> None:
    """Train and evaluate one cell, and keep what is known of it; skip what is there already.

    One that was trained for fewer steps goes on. Without steps, what training would start from is
    evaluated.

    Raises:
        SystemExit: A cell cannot go on, as its training is elsewhere.
    """
    kept, place = places.cells / f"{name}.json", places.out / name
    known = Cell.load(kept).steps if kept.exists() else None
    if known is not None and known >= steps:
        return
    training, trained = place / "training", place / f"trained_{steps}"
    if known and not training.exists():
        raise SystemExit(
            f"{kept} was trained for {known:,} steps, not {steps:,}, and {training}, from which it"
            " could go on, is not there; delete the file to train it from the beginning."
        )
    if steps and not trained.exists():
        words = [word for change in (*COMMON, *changes) for word in ("--set", change)]
        for stop in (f"num_env_steps_sampled_lifetime={steps}", "time_total_s=36000"):
            words += ["--stop", stop]
        if list(training.glob("*/*")):
            words.append("--resume")
        rllib("train", "file", str(EXPERIMENT), *words, "--out", str(training))
        trained.touch()
    evaluated = place / f"evaluated_{steps}"
    if not is_complete(evaluated):
        policy = str(training / "stone_pickaxe/latest" / weights) if steps else str(EXPERIMENT)
        rllib(
            *("benchmark", "run", policy, "--suite", "tech-tree", "--tasks", "logs_1200"),
            *("--episodes", str(episodes), "--seed", str(worlds), "--no-videos"),
            *("--envs", str(min(episodes, 25)), "--out", str(evaluated)),
        )
    Cell.read(training, evaluated, changes).save(kept)


def is_complete(folder: Path) -> bool:
    """Whether a cell was evaluated to the end."""
    file = folder / "benchmark.json"
    return file.exists() and json.loads(file.read_text())["counts"]["played"] == 1


def described() -> dict[str, str]:
    """What each arm is, in the words of a command."""
    changes = {**ARMS, **ABLATIONS}
    return {name: " ".join(f"--set {change}" for change in changes[name]) for name in changes}


def rllib(*words: str) -> None:
    """Run the command, showing it and what it prints.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    print("+ rllib", *words, flush=True)
    subprocess.run([sys.executable, "-m", "rllib_minestudio.cli.main", *words], check=True)


if __name__ == "__main__":
    main()
