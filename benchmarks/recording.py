"""What recording costs: rollout speed with and without, in turns.

    python benchmarks/recording.py [--preset nano] [--envs 4] [--rounds 10] [--long]

The cow task at 128x128, environments and network in one process, sampled actions. Each round plays
the same number of steps without a recorder and with it; the ratio is of those two, and the table
has the median over the rounds. `--long` instead records one episode of 12,000 steps at 640x360 and
prints how memory grew.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from rich.console import Console
from rich.table import Table

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.recorder import EpisodeRecorder, RecorderOptions
from rllib_minestudio.models.vpt.acting import InferenceSession
from rllib_minestudio.models.vpt.network import VPTNetwork
from rllib_minestudio.models.vpt.weights import config_from_options
from rllib_minestudio.recordings import Recording

COW = Path(__file__).parents[1] / "tuned_examples" / "cow_vpt.yaml"
SIZE = 128
STEPS = 200
LONG_STEPS = 12_000
LONG_SIZE = (640, 360)
SETTINGS: dict[str, dict[str, Any]] = {
    "default (h264, crf 23, ultrafast)": {},
    "h264, veryfast": {"preset": "veryfast"},
    "lossless": {"crf": 0},
    "jpeg": {"media": "jpeg"},
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="nano", help="size of the network")
    parser.add_argument("--envs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--long", action="store_true", help="one long episode, for its memory")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.long:
            record_long_episode(folder)
        else:
            compare(arguments, folder)


def compare(arguments: argparse.Namespace, folder: str) -> None:
    """Play in turns without and with each setting."""
    torch.manual_seed(0)
    options = {"preset": arguments.preset, "img_shape": [SIZE, SIZE, 3]}
    network = VPTNetwork(config_from_options(options, ()))
    groups = {"": [Players(network, arguments.envs, None)]}
    for name, setting in SETTINGS.items():
        recorder = RecorderOptions(folder=str(Path(folder, name)), **setting)
        groups[name] = [Players(network, arguments.envs, recorder)]
    seconds: dict[str, list[float]] = {name: [] for name in groups}
    for players in groups.values():
        players[0].play(STEPS // 4)
    for _ in range(arguments.rounds):
        for name, players in groups.items():
            started = time.perf_counter()
            players[0].play(STEPS)
            seconds[name].append(time.perf_counter() - started)
    title = f"{arguments.preset}, {arguments.envs} environments, {SIZE}x{SIZE}"
    table = Table("recording", "env steps/s", "of the speed without", "min", "max", title=title)
    for name, times in seconds.items():
        ratios = [plain / own for plain, own in zip(seconds[""], times, strict=True)]
        speed = arguments.envs * STEPS / statistics.median(times)
        cells = (f"{f(ratios):.3f}" for f in (statistics.median, min, max))
        table.add_row(name or "none", f"{speed:,.0f}", *cells)
    Console().print(table)


class Players:
    """Environments that a network plays, as an env runner does."""

    def __init__(self, network: VPTNetwork, count: int, recorder: RecorderOptions | None) -> None:
        """Build and reset them."""
        experiment = next(iter(yaml.safe_load(COW.read_text()).values()))
        config = {**experiment["config"]["env_config"], "obs_size": [SIZE, SIZE]}
        self._envs: list[Any] = [MineStudioEnv(config, vector_index=i) for i in range(count)]
        if recorder is not None:
            self._envs = [EpisodeRecorder(env, recorder) for env in self._envs]
        self._session = InferenceSession(network, count)
        self._episodes = 0
        self._obs = np.stack([self._reset(env) for env in self._envs])
        self._first = np.ones(count, np.bool_)

    def play(self, steps: int) -> None:
        """Play so many steps in each environment."""
        for _ in range(steps):
            decision = self._session.act(
                torch.from_numpy(self._obs), torch.from_numpy(self._first), explore=True
            )
            actions = {name: tokens[:, 0].numpy() for name, tokens in decision.actions.items()}
            for i, env in enumerate(self._envs):
                obs, _, terminated, truncated, _ = env.step(
                    {name: tokens[i] for name, tokens in actions.items()}
                )
                self._first[i] = terminated or truncated
                self._obs[i] = self._reset(env) if self._first[i] else obs["image"]

    def _reset(self, env: Any) -> np.ndarray:
        self._episodes += 1
        obs, _ = env.reset(options={"recording": {"name": f"episode-{self._episodes:05d}"}})
        return obs["image"]


def record_long_episode(folder: str) -> None:
    """Record 12,000 steps at 640x360 and print the growth of the process."""
    env = MineStudioEnv(obs_size=LONG_SIZE, callbacks=[{"JudgeReset": {"time_limit": LONG_STEPS}}])
    recorder = EpisodeRecorder(env, RecorderOptions(folder=folder))
    rng = np.random.default_rng(0)
    recorder.reset(seed=0)
    table = Table("steps", "peak memory, MB", "ms per step", title=f"recording at {LONG_SIZE}")
    done, steps, started = False, 0, time.perf_counter()
    while not done:
        action = {"buttons": int(rng.integers(8640)), "camera": int(rng.integers(121))}
        *_, terminated, truncated, info = recorder.step(action)
        if terminated:  # a random walk may die; the recording goes on in the next life
            recorder.env.reset(seed=steps)
        done, steps = truncated, steps + 1
        if steps % (LONG_STEPS // 6) == 0 or steps == 500:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            table.add_row(
                f"{steps:,}", f"{peak:,.0f}", f"{(time.perf_counter() - started) / steps * 1e3:.1f}"
            )
    Console().print(table)
    recording = Recording(info["recording"])
    size = sum(file.stat().st_size for file in recording.path.iterdir()) / 1024**2
    print(f"{len(recording):,} steps, {size:.0f} MB on disk")


if __name__ == "__main__":
    main()
