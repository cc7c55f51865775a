"""Checkpoints of policies other than VPT whose `network.json` or tensors lie."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml
from judging import ACCEPTED, Case
from safetensors.torch import load_file

from rllib_minestudio import checkpoints
from rllib_minestudio.checkpoints.checkpoint import MODULE_PATH, PLAYING_FILE
from rllib_minestudio.checkpoints.record import with_own_digest
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.models.policy import copy_policy
from rllib_minestudio.models.rl_modules import ConvGRURLModule
from tests.models.vpt.checkpoints import tell

ENV_CONFIG = {"obs_size": [64, 64]}
OPTIONS = {"hidden_size": 8, "channels": [2, 2, 2], "text_size": 2, "temperature": 1.0}
NETWORK, TENSORS = Path("policy", "network.json"), Path("policy", "model.safetensors")


class World(NamedTuple):
    """What loading asks of an environment."""

    observation_space: Any
    action_space: Any


def world() -> World:
    return World(**MineStudioEnv.spaces_of(ENV_CONFIG))


@cache
def _written() -> tempfile.TemporaryDirectory[str]:
    """What evaluation and playing read of a checkpoint, and no record that would tell changes."""
    place = tempfile.TemporaryDirectory()
    folder = Path(place.name)
    (folder / MODULE_PATH).mkdir(parents=True)
    torch.manual_seed(0)
    module = ConvGRURLModule(model_config=OPTIONS, **world()._asdict())
    torch.save(module.network.state_dict(), folder / "state.pt")
    copy_policy(checkpoints.open(folder / "state.pt"), folder / "policy", "ConvGRU", OPTIONS)
    (folder / "state.pt").unlink()
    facts = {
        "algorithm": "rllib_minestudio.algorithms.MineStudioPPO",
        "env": f"{MineStudioEnv.__module__}.{MineStudioEnv.__qualname__}",
        "env_config": ENV_CONFIG,
        "num_envs_per_env_runner": 1,
    }
    (folder / "policy" / PLAYING_FILE).write_text(with_own_digest(yaml.safe_dump(facts)))
    return place


def evaluate(folder: str) -> str:
    from rllib_minestudio.evaluation.policy_loading import evaluation_config, load_policy

    loaded = load_policy(folder)
    evaluation_config(loaded.config, num_env_runners=0)
    return str(loaded.identity)


def play(folder: str) -> str:
    from rllib_minestudio.evaluation.policy_loading import load_module

    return str(load_module(folder, world()).device)


def look(folder: str) -> str:
    from rllib_minestudio.cli.model_command import ModelInfoRequest, info

    return str(info(ModelInfoRequest(paths=(folder,))))


def export(folder: str) -> str:
    from rllib_minestudio.models.vpt.weights import export_checkpoint

    export_checkpoint(checkpoints.open(folder), f"{folder}/out")
    return "exported"


def _changed(change: Callable[[Path], object]) -> Callable[[Path], str]:
    def prepare(folder: Path) -> str:
        shutil.copytree(_written().name, folder / "checkpoint")
        change(folder / "checkpoint")
        return str(folder / "checkpoint")

    return prepare


def _says(description: Any) -> Callable[[Path], str]:
    text = description if isinstance(description, str) else json.dumps(description)
    return _changed(lambda folder: tell(folder / "policy", text))


def _tensors(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]):
    def rewrite(folder: Path) -> None:
        tell(folder / "policy", None, change(load_file(folder / TENSORS)))

    return _changed(rewrite)


def descriptions() -> Iterator[tuple[str, Any]]:
    """Files that nothing can be told from: not even what they hold is shown."""
    for value in (5, None, True, ["ConvGRU"], {"a": 1}, "", ".x.Y", "a..b", "../../x.Y", "/x.Y"):
        yield f"class {value!r}", {"policy": value, "options": OPTIONS}
    for name, value in {
        "long": "a." * 100_000 + "b",
        "unicode": "b\u00f6se.Klasse",
        "control codes": "a.\x1b[31mb",
        "NUL": "a\x00.b",
        "surrogate": "a.\ud800",
        "bracket": "os.system('true')",
    }.items():
        yield f"class: {name}", {"policy": value, "options": OPTIONS}
    yield "no options", {"policy": "ConvGRU"}
    for value in (None, 5, "x", [1], [["hidden_size", 8]]):
        yield f"options {value!r}", {"policy": "ConvGRU", "options": value}
    yield "nested", '{"policy": "ConvGRU", "options": ' + "[" * 100_000
    yield "digits", '{"policy": "ConvGRU", "options": {"hidden_size": ' + "9" * 5000 + "}}"
    yield "cut off", json.dumps({"policy": "ConvGRU", "options": OPTIONS})[:-9]


CLASSES = (
    *("os.system", "builtins.eval", "builtins.exec", "builtins.dict", "antigravity.fly"),
    *("os:system", "subprocess.Popen", "torch.nn.Linear", "no_such_package.module.MyPolicy"),
    *(
        "Policy",
        "rllib_minestudio.models.policy_registry.find_policy",
        "rllib_minestudio.cli.main.main",
    ),
    "rllib_minestudio.models.policy.RecurrentRLModule",
    "rllib_minestudio.models.no_such_module.X",
    "VPT",
)
"""No policy of these names, or one of other options."""

LIES: dict[str, Any] = {
    **{f"hidden_size {v}": {"hidden_size": v} for v in (10**9, 16384, 0, -1, 1.5, "8", None, [8])},
    **{f"channels {v}": {"channels": v} for v in ([10**9] * 3, [4096] * 3, [], [2, 2], "222", 5)},
    "channels nested": {"channels": [[2], 2, 2]},
    "text_size": {"text_size": 10**9},
    "temperature": {"temperature": float("nan")},
    "temperature 0": {"temperature": 0},
    "another option": {"shell": "true"},
    "an option without name": {"": 1},
    "nested option": {"hidden_size": json.loads("[" * 900 + "]" * 900)},
}
"""Options that the tensors beside them, or the class, belie."""


def cases() -> Iterator[Case]:
    for attack in (evaluate, play, look):
        yield Case(f"honest: {attack.__name__}", _changed(lambda folder: None), attack, ACCEPTED)
    yield Case("honest: bfloat16", _tensors(_as_bfloat16), evaluate, ACCEPTED)
    yield Case("MineStudio has no such class", _changed(lambda folder: None), export)
    # What is read is the same, so each lie is told to one of those that read it.
    for (name, description), attack in zip(descriptions(), cycle((look, evaluate))):
        yield Case(f"{name}: {attack.__name__}", _says(description), attack)
    for name, attack in zip(CLASSES, cycle((play, evaluate))):
        described = {"policy": name, "options": OPTIONS}
        yield Case(f"class {name}: {attack.__name__}", _says(described), attack)
    for (name, change), attack in zip(LIES.items(), cycle((play, evaluate))):
        described = {"policy": "ConvGRU", "options": {**OPTIONS, **change}}
        yield Case(f"{name}: {attack.__name__}", _says(described), attack)
    for name, value in {
        "nan": torch.full((8,), float("nan")),
        "infinite": torch.full((8,), float("inf")),
        "integers": torch.ones(8, dtype=torch.int64),
        "another shape": torch.ones(9),
        "no elements": torch.ones(0),
    }.items():
        for attack in (evaluate, play):
            changed = _tensors(lambda state, value=value: {**state, "norm.weight": value})
            yield Case(f"tensors: {name}: {attack.__name__}", changed, attack)
    more = _tensors(lambda state: {**state, "one.more": torch.ones(1)})
    yield Case("tensors: one more", more, evaluate)
    gone = _changed(lambda folder: (folder / TENSORS).unlink())
    yield Case("tensors: none", gone, evaluate)


def _as_bfloat16(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: t.bfloat16() if t.is_floating_point() else t for name, t in state.items()}
