"""What new worlds and steps cost: `python benchmarks/worlds.py --before COMMIT`.

With another commit, both trees play in processes of their own, which take turns, world by world; a
ratio is that of the medians of wall-clock times. `MineStudioEnv.reset` makes a world for each seed,
in plains and in a forest, with its twenty empty frames; a step is one of cow.yaml's environment,
with random actions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from renderer import ROOT, checkout

KINDS = ("plains", "forest", "step")
STEPS = 600
"""Steps of an episode, whose mean is taken."""


def serve() -> None:
    """Answer one JSON request per line, [kind, seed], with seconds."""
    import yaml

    from rllib_minestudio.env.minestudio_env import MineStudioEnv

    (experiment,) = yaml.safe_load((ROOT / "tuned_examples" / "cow.yaml").read_text()).values()
    envs: dict[str, Any] = {
        kind: MineStudioEnv({"obs_size": (64, 64), "preferred_spawn_biome": kind})
        for kind in KINDS
        if kind != "step"
    }
    envs["step"] = MineStudioEnv(experiment["config"]["env_config"])
    for env in envs.values():
        env.reset(seed=0)
        env.action_space.seed(0)
    for line in sys.stdin:
        kind, seed = json.loads(line)
        env = envs[kind]
        if kind == "step":
            env.reset(seed=seed)
            actions = [env.action_space.sample() for _ in range(STEPS)]
            start = time.perf_counter()
            for action in actions:
                env.step(action)
            took = (time.perf_counter() - start) / STEPS
        else:
            start = time.perf_counter()
            env.reset(seed=seed)
            took = time.perf_counter() - start
        print(json.dumps(took), flush=True)


class Tree:
    """A process that plays in one checkout."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve"],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, kind: str, seed: int) -> float:
        """Return what `serve` answers."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([kind, seed]) + "\n")
        self._process.stdin.flush()
        while answer := self._process.stdout.readline():
            if answer[0].isdigit():  # before the first, a tree may say that it compiles
                return float(answer)
        raise SystemExit("The process of a tree has ended; see its error above.")

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(trees: list[Tree], worlds: int) -> None:
    """Print the medians for one tree, or for this one and the one before, in this order."""
    for kind in KINDS:
        taken: list[list[float]] = [[] for _ in trees]
        for seed in range(1, worlds + 1):
            order = list(zip(trees, taken, strict=True))
            for tree, times in order if seed % 2 else order[::-1]:
                times.append(tree.ask(kind, seed) * 1e3)
        medians = [median(times) for times in taken]
        line = f"{kind:>8} " + " ".join(f"{value:9.3f}" for value in medians) + " ms"
        if len(trees) > 1:
            line += f"  ratio {medians[0] / medians[1]:.3f}"
        print(line, flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", metavar="COMMIT", help="commit to compare with")
    parser.add_argument("--worlds", type=int, default=120, help="of each kind")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    trees = [Tree(ROOT)]
    try:
        if options.before is None:
            compare(trees, options.worlds)
            return
        with checkout(options.before) as before:
            trees.append(Tree(before))
            compare(trees, options.worlds)
            trees.pop().close()
    finally:
        for tree in trees:
            tree.close()


if __name__ == "__main__":
    main()
