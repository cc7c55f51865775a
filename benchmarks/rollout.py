"""What the env runner adds to playing: its steps per second beside those of a bare loop.

    python benchmarks/rollout.py [--num-envs 16] [--repeats 8]
    python benchmarks/rollout.py --memory

Both play the cow task (`tuned_examples/cow_vpt.yaml`) in the embedded engine, with `nano`, in turns
within one process. The bare loop does what has to be done: it steps each environment, puts the
frames into one batch and runs the policy on it; it records nothing. The runner's overhead is the
difference, per environment step. Everything runs in one thread, and is timed in processor time,
which other programs on the machine disturb less.

`--memory` plays 8 environments x 256 steps with a network whose memory is as large as VPT 2x's
(8 MiB per environment), and prints how far the process's memory grew beyond the model, which a
rollout session copies once (`models/vpt/inference.py`).
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import yaml
from rich.console import Console
from rich.table import Table

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from rllib_minestudio.env import MineStudioEnv

COW = Path(__file__).parents[1] / "tuned_examples" / "cow_vpt.yaml"
STATE_OF_2X = {"hidsize": 2048, "attention_heads": 16, "n_recurrence_layers": 4}
"""What decides the size of the memory: 2 x 4 layers x 128 frames x 2048 numbers."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=8, help="timed pairs")
    parser.add_argument("--memory", action="store_true", help="measure memory instead")
    arguments = parser.parse_args()
    if arguments.memory:
        measure_memory()
    else:
        torch.set_num_threads(1)  # nano is too small to share
        measure_speed(arguments.num_envs, arguments.repeats)


def measure_speed(num_envs: int, repeats: int) -> None:
    """Time the runner and the bare loop in turns."""
    options = next(iter(yaml.safe_load(COW.read_text()).values()))["config"]
    config = MineStudioPPOConfig().environment(env_config=options["env_config"])
    config.training(model=options["model"], decorrelation_steps=100)
    config.env_runners(num_envs_per_env_runner=num_envs, rollout_fragment_length=64)
    runner = make_runner(config)
    bare = BareLoop(runner.module, options["env_config"], num_envs)
    steps = num_envs * config.rollout_fragment_length
    times: dict[str, list[float]] = {"bare loop": [], "env runner": []}
    for repeat in range(repeats + 1):
        for name, play in (
            ("bare loop", lambda: bare.play(config.rollout_fragment_length)),
            ("env runner", runner.sample),
        ):
            started = time.process_time()
            play()
            if repeat:  # the first warms up
                times[name].append(time.process_time() - started)
    runner.stop()

    table = Table("what", "ms per env step", "env steps/s", title=f"nano, {num_envs} environments")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        table.add_row(name, f"{1000 * median / steps:.3f}", f"{steps / median:,.0f}")
    pairs = list(zip(times["bare loop"], times["env runner"], strict=True))
    ratio = statistics.median(ours / theirs for theirs, ours in pairs)
    overhead = statistics.median(ours - theirs for theirs, ours in pairs)
    console = Console()
    console.print(table)
    console.print(f"speed of the runner / of the bare loop: {1 / ratio:.2f} (required: 0.80)")
    console.print(f"overhead: {1000 * overhead / steps:.3f} ms per env step (required: 0.1)")


def measure_memory() -> None:
    """Play one round and compare the peak of memory with that before."""
    config = MineStudioPPOConfig().environment(env=BlankEnv)
    config.training(model={"preset": "nano", **STATE_OF_2X, "timesteps": 128})
    config.training(model={"attention_memory_size": 256, "img_shape": [128, 128, 3]})
    config.training(env_pool={"mode": "inline"})
    config.env_runners(num_envs_per_env_runner=8, rollout_fragment_length=256)
    runner = make_runner(config)
    before = peak_memory()
    rollout = runner.sample()
    grown = peak_memory() - before
    state = sum(array.nbytes for array in rollout.fragments[0].state_in.values())
    weights = sum(parameter.nbytes for parameter in runner.module.parameters())
    runner.stop()
    print(
        f"8 environments x 256 steps at 128x128, memory of {state / 2**20:.1f} MiB each: the "
        f"process grew by {grown / 2**20:,.0f} MiB, of which {weights / 2**20:,.0f} MiB are the "
        "weights as they are laid out for acting; the rest is "
        f"{(grown - weights) / 1e6:,.0f} MB (required: 1,000)"
    )


def make_runner(config: MineStudioPPOConfig) -> MineStudioEnvRunner:
    """A runner in this process."""
    config.validate()
    return MineStudioEnvRunner(config=config, worker_index=0, num_workers=0)


def peak_memory() -> int:
    """Of this process until now, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class BareLoop:
    """Environments and policy, and nothing else."""

    def __init__(self, module: Any, env_config: dict[str, Any], num_envs: int) -> None:
        """Begin the episodes."""
        self._envs = [MineStudioEnv(env_config, vector_index=i) for i in range(num_envs)]
        self._session = module.make_rollout_session(num_envs)
        frames = [env.reset()[0]["image"] for env in self._envs]
        self._frames = np.stack(frames)
        self._first = np.ones(num_envs, np.bool_)

    def play(self, steps: int) -> None:
        """Play so many steps in each environment."""
        for _ in range(steps):
            decision = self._session.act(
                {"image": torch.from_numpy(self._frames)}, torch.from_numpy(self._first)
            )
            tokens = {name: tensor.numpy() for name, tensor in decision.actions.items()}
            for i, env in enumerate(self._envs):
                action = {name: values[i] for name, values in tokens.items()}
                obs, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    obs, _ = env.reset()
                self._frames[i] = obs["image"]
                self._first[i] = terminated or truncated


class BlankEnv(gym.Env):
    """Nothing happens here, in 128 x 128 pixels."""

    def __init__(self, config: Any = None) -> None:
        """Make the spaces."""
        image = gym.spaces.Box(0, 255, (128, 128, 3), np.uint8)
        self.observation_space = gym.spaces.Dict(image=image)
        self.action_space = gym.spaces.Dict(
            buttons=gym.spaces.MultiDiscrete([8641]), camera=gym.spaces.MultiDiscrete([121])
        )
        self._obs = {"image": np.zeros((128, 128, 3), np.uint8)}

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        """Return the only observation."""
        return self._obs, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Return the only observation."""
        return self._obs, 0.0, False, False, {}


if __name__ == "__main__":
    main()
