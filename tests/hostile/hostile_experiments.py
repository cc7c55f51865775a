"""Experiment files, and values of options, that should not pass."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from judging import ACCEPTED, Case

HONEST: dict[str, Any] = {
    "tiny": {
        "run": "MineStudioPPO",
        "env": "MineStudioEnv",
        "stop": {"training_iteration": 1},
        "config": {
            "env_config": {"obs_size": [64, 64], "callbacks": [{"JudgeReset": {"time_limit": 20}}]},
            "model": {
                "preset": "nano",
                "hidsize": 16,
                "attention_heads": 2,
                "n_recurrence_layers": 1,
                "attention_memory_size": 24,
                "timesteps": 16,
            },
            "num_env_runners": 0,
            "num_envs_per_env_runner": 2,
            "rollout_fragment_length": 32,
            "context_length": 16,
            "fragments_per_iteration": 2,
            "fragments_per_minibatch": 2,
            "prior": None,
            "kl_coeff": 0.0,
        },
    }
}

NAN, INF, IMMENSE = float("nan"), float("inf"), 10**12

VALUES: dict[str, tuple[Any, ...]] = {
    "config.lr": (
        NAN,
        INF,
        -1.0,
        -INF,
        [[0, NAN]],
        [[0, -1.0]],
        [],
        [[5, 1e-4]],
        [1e-4, 1e-5],
        1e30,
    ),
    "config.grad_clip": (-1, NAN),
    "config.gamma": (NAN, 1.5, -0.1),
    "config.lambda": (NAN, 2),
    "config.kl_coeff": (NAN, -1, INF),
    "config.vf_coeff": (NAN, -1, INF),
    "config.entropy_coeff": (NAN, INF, -1),
    "config.entropy_decay": (NAN, 1.5, -0.1),
    "config.clip_param": (0, -1, NAN),
    "config.weight_decay": (NAN, -1),
    "config.adam_eps": (NAN, 0, -1),
    "config.ema_decay": (NAN, 2, -1),
    "config.log_ratio_clamp": (NAN, 0),
    "config.importance_weight_truncation": (NAN, -1),
    "config.sample_timeout_s": (NAN, 0, -1),
    "config.num_env_runners": (-5, IMMENSE),
    "config.num_learners": (-1, IMMENSE),
    "config.num_envs_per_env_runner": (0, -1, IMMENSE),
    "config.num_gpus_per_learner": (-1, NAN),
    "config.num_gpus_per_env_runner": (-1, NAN),
    "config.num_cpus_per_env_runner": (-1, NAN),
    "config.rollout_fragment_length": (0, -1, IMMENSE, 1e12),
    "config.context_length": (0, IMMENSE),
    "config.num_epochs": (0, IMMENSE),
    "config.fragments_per_iteration": (0, IMMENSE, 1.5),
    "config.fragments_per_minibatch": (0, IMMENSE),
    "config.gradient_accumulation": (0, IMMENSE),
    "config.decorrelation_steps": (-1, 10**15),
    "config.replay_buffer.max_fragments": (0, 10**15, NAN),
    "config.replay_buffer.max_reuse": (0, NAN),
    "config.seed": (-1, 2**70),
    "config.evaluation_duration": (0, -1, 10**15),
    "config.env_pool.mode": ("x", [1], {"a": 1}),
    "config.env_pool.step_timeout_s": (NAN, 0, INF),
    "config.behaviour_cloning.coeff": (-1, NAN),
    "config.behaviour_cloning.recordings": (5, "/nonexistent"),
    "config.model.hidsize": (10**7, 10**9, -4, NAN),
    "config.model.n_recurrence_layers": (10**7, 0),
    "config.model.temperature": (NAN, INF, 0),
    "config.model.preset": ([1], {"a": 1}, "x"),
    "config.model.weights": ("/nonexistent", 5, [1, 2, 3]),
    "config.module_class": (
        *(
            "os.system",
            "builtins.eval",
            "builtins.dict",
            "antigravity.fly",
            "x",
            "",
            ".x.Y",
            "a..b",
        ),
        *(
            "os",
            "../x.Y",
            "no_such_package.Y",
            "rllib_minestudio.models.policy_registry.find_policy",
        ),
        *("rllib_minestudio.models.policy.RecurrentRLModule", "\u00fc.X", "a.\x1b[1m"),
        *("a." * 100_000 + "b", "a" * 100_000, "a\x00.b", 5, None, NAN, True, ["VPT"], {"VPT": 1}),
    ),
    "config.env_config.seed": (-1, 2**70),
    "config.env_config.num_empty_frames": (-1, IMMENSE),
    "config.env_config.obs_size": ([10**6, 10**6], [0, 0], 5, [NAN, NAN]),
    "config.env_config.camera_config": ({"camera_maxval": IMMENSE}, {"camera_mu": NAN}, 5),
    "config.env_config.inventory": ({0: {"type": "bow", "quantity": 10**9}}, 5),
    "config.env_config.callbacks": (
        [
            {
                "SummonMobs": [
                    {"name": "cow", "number": IMMENSE, "range_x": [0, 1], "range_z": [0, 1]}
                ]
            }
        ],
        [{"SummonMobs": [{"name": "cow", "number": 1, "range_x": [0, NAN], "range_z": [0, 1]}]}],
        [
            {
                "SummonMobs": [
                    {"name": "cow\n/kill", "number": 1, "range_x": [0, 1], "range_z": [0, 1]}
                ]
            }
        ],
        [{"JudgeReset": IMMENSE}],
        [{"JudgeReset": NAN}],
        [{"FastReset": {"biomes": ["plains"], "random_tp_range": IMMENSE}}],
        [{"FastReset": {"biomes": ["plains\n/kill @a"], "random_tp_range": 1}}],
        [{"Commands": ["/say a\r/kill"]}],
        [{"Commands": ["/say " + "a" * 100_000]}],
        [{"TaskFile": "/nonexistent"}],
        [{"TaskFile": "/dev/zero"}],
        [{"os.system": "true > /tmp/rllib_minestudio_was_run"}],
        [{"subprocess.check_output": {"args": ["true"]}}],
        [{"builtins.eval": "1"}],
        ["antigravity.fly"],
        [{"Compose": [{"os.system": "true"}]}],
        [["a"]],
        [{1: 2}],
        5,
    ),
    "config.env": ("os.system", "subprocess.call", 5),
    "config.callbacks": ("os.system",),
    "run": ("os.system", "builtins.dict", "x.y"),
    "env": ("os.system", "builtins.print", "builtins.dict"),
    "num_samples": (0, -1, IMMENSE, NAN, 1.5),
    "stop.training_iteration": (NAN, INF, 0, -5, "x"),
    "stop.time_total_s": (NAN, -1),
    "checkpoint_config.save_interval": (-1, NAN, 1.5),
    "checkpoint_config.num_to_keep": (0, NAN),
    "record_video_interval": (0, NAN, -1),
    "summary.video_episodes": (-1, IMMENSE, NAN),
    "summary.random_policy_episodes": (-1, IMMENSE),
    "evaluation.episodes": (0, NAN),
    "scheduler.asha": ({"max_t": NAN}, {"grace_period": -1}),
}

NAMES = ("../../x", "/tmp/x", "a/b", "..", ".", "", "a\nb", "\x1b[31m", " x", "x" * 300, "a\\b")


def plan(file: str) -> str:
    from rllib_minestudio.experiments.experiment_file import load_experiments
    from rllib_minestudio.experiments.plan import make_plan

    for experiment in load_experiments(Path(file)):
        make_plan(experiment)
    return "planned"


def _text(content: str | bytes, name: str = "x.yaml"):
    def prepare(folder: Path) -> str:
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)
        return str(folder / name)

    return prepare


def _with(path: str, value: Any):
    experiment = copy.deepcopy(HONEST["tiny"])
    *parents, last = path.split(".")
    place = experiment
    for key in parents:
        place = place.setdefault(key, {})
    place[last] = value
    return _text(yaml.safe_dump({"tiny": experiment}))


def cases() -> Iterator[Case]:
    yield Case("honest", _text(yaml.safe_dump(HONEST)), plan, ACCEPTED)
    for path, values in VALUES.items():
        for value in values:
            yield Case(f"{path}: {str(value)[:60]!r}", _with(path, value), plan)
    for name in NAMES:
        yield Case(f"name {name[:20]!r}", _text(yaml.safe_dump({name: HONEST["tiny"]})), plan)
    body = yaml.safe_dump(HONEST)
    laughs = "a0: &a0 [x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
    )
    merges = "m0: &m0 {k: 1}\n" + "".join(
        f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 10)}]}}\n" for i in range(1, 9)
    )
    chain = (
        "".join(f"v{i}: ${{v{i + 1}}}${{v{i + 1}}}${{v{i + 1}}}\n" for i in range(15)) + "v15: x\n"
    )
    for name, text in {
        "alias bomb": laughs,
        "merge bomb": merges,
        "interpolation bomb": chain,
        "contains itself": "a: &a [*a]\n",
        "nested": "a: " + "[" * 20_000,
        "nested mappings": "{a: " * 5_000,
        "empty": "",
        "a list": "- 1\n",
        "a number": "5",
        "tabs": "a:\n\tb: 1\n",
        "no text": b"\xff\xfe\x00\x01",
        "NUL": b"a: \x00",
        "a date that is none": body + "x: 2024-02-31\n",
        "digits": f"tiny: {{num_samples: {'9' * 5000}}}\n",
        "a Python object": "a: !!python/object/apply:os.system ['true']\n",
        "unknown interpolation": "tiny: {run: '${nothing}'}\n",
        "unknown resolver": "tiny: {run: '${x:1}'}\n",
        "broken interpolation": "tiny: {run: '${'}\n",
        "missing value": "tiny: {run: '???'}\n",
        "immense": "# " + "x" * 20_000_000 + "\n" + body,
        "a grid of a million": yaml.safe_dump(
            {
                "tiny": {
                    **HONEST["tiny"],
                    "config": {**HONEST["tiny"]["config"], "lr": {"grid_search": "x"}},
                }
            }
        ),
        "keys that are no texts": "1: {2: 3}\n",
        "sections that are no mappings": "tiny: {config: [1], stop: 5}\n",
    }.items():
        yield Case(f"YAML: {name}", _text(text), plan)
    for name, text in {
        "exits": "import sys; sys.exit(0)",
        "raises": "1 / 0",
        "no Python": "(((",
        "nothing": "",
        "config is a number": "config = 5",
    }.items():
        yield Case(f"Python: {name}", _text(text, "x.py"), plan)

    def pipe(folder: Path) -> str:
        os.mkfifo(folder / "x.yaml")
        return str(folder / "x.yaml")

    yield Case("a named pipe", pipe, plan)
