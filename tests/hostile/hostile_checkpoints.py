"""Checkpoints with a flipped bit, a file that is cut off or missing, or a record that lies."""

from __future__ import annotations

import dataclasses
import pickle
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from hostile_weights import look, network
from judging import ACCEPTED, Case

from rllib_minestudio.algorithms import MineStudioPPO, MineStudioPPOConfig
from rllib_minestudio.algorithms.saving import write_policy, write_record
from rllib_minestudio.checkpoints.checkpoint import MODULE_CLASS, MODULE_PATH
from rllib_minestudio.checkpoints.record import RECORD_FILE, with_own_digest
from rllib_minestudio.checkpoints.trust import SEAL_FILE

FLIPS = 60


class Spaces:
    """Stands for the objects that RLlib keeps beside a module's options."""


@cache
def _written() -> tempfile.TemporaryDirectory[str]:
    """A checkpoint as a trial leaves it, without the training."""
    place = tempfile.TemporaryDirectory()
    folder = Path(place.name)
    module = folder / MODULE_PATH
    module.mkdir(parents=True)
    options = dataclasses.asdict(network().config)
    described = ((), {"model_config": options, "observation_space": Spaces()})
    state = {name: tensor.numpy() for name, tensor in network().state_dict().items()}
    config = MineStudioPPOConfig().environment(env_config={"obs_size": [16, 16]})
    for file, content in (
        (module / "class_and_ctor_args.pkl", {"class": Spaces, "ctor_args_and_kwargs": described}),
        (module / "module_state.pkl", state),
        (
            folder / "class_and_ctor_args.pkl",
            {"class": MineStudioPPO, "ctor_args_and_kwargs": ((config.get_state(),), {})},
        ),
        (folder / "algorithm_state.pkl", {"counters": {}}),
    ):
        file.write_bytes(pickle.dumps(content))
    write_policy(folder, config)
    write_record(folder, config, {"training_iteration": 1})
    return place


def load(folder: str) -> str:
    from rllib_minestudio.evaluation.policy_loading import load_policy

    return str(load_policy(folder).identity)


def _changed(change: Callable[[Path], None]) -> Callable[[Path], str]:
    def prepare(folder: Path) -> str:
        shutil.copytree(_written().name, folder / "checkpoint")
        change(folder / "checkpoint")
        return str(folder / "checkpoint")

    return prepare


def _files() -> list[str]:
    root = Path(_written().name)
    # A seal that is none makes a stranger's of one's own: test_trust.py.
    files = [p for p in root.rglob("*") if p.is_file() and p.name != SEAL_FILE]
    return sorted(str(p.relative_to(root)) for p in files)


def _flipped(name: str, position: float, bit: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[int(position * len(content))] ^= 1 << bit
        (folder / name).write_bytes(content)

    return change


def _cut(name: str, share: float) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(share * len(content))])

    return change


def _record(**changes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        record = yaml.safe_load((folder / RECORD_FILE).read_text())
        text = yaml.safe_dump({**record, **changes})
        (folder / RECORD_FILE).write_text(with_own_digest(text))

    return change


def _described(arguments: Any) -> Callable[[Path], str]:
    """The module alone, whose size only RLlib's pickle of its arguments tells."""

    def prepare(folder: Path) -> str:
        shutil.copytree(Path(_written().name) / MODULE_PATH, folder / "module")
        described = {"class": Spaces, "ctor_args_and_kwargs": arguments}
        (folder / "module" / MODULE_CLASS).write_bytes(pickle.dumps(described))
        return str(folder / "module")

    return prepare


NO_MAPPINGS: dict[str, Any] = {
    "numbers": [1, 2],
    "pairs": [("hidsize", 8)],
    "text": "x" * 10**6,
    "array": np.arange(3),
    "array of one": np.arange(1),
    "array of text": np.array(["ab", "cd"]),
    "an object": Spaces(),
    "a number": np.int64(3),
}
"""What Python turns into a mapping after all, or into one of many exceptions."""


def descriptions() -> Iterator[Case]:
    """Arguments of a module that are of other types than RLlib writes."""
    options = dataclasses.asdict(network().config)
    honest = ((), {"model_config": options, "observation_space": Spaces()})
    yield Case("honest module", _described(honest), look, ACCEPTED)
    for name, value in NO_MAPPINGS.items():
        yield Case(f"arguments: {name}", _described(value), look)
        yield Case(f"keywords: {name}", _described(((), value)), look)
        yield Case(f"model_config: {name}", _described(((), {"model_config": value})), look)
        for field in ("img_shape", "precision", "temperature"):
            changed = ((), {"model_config": {**options, field: value}})
            yield Case(f"{field}: {name}", _described(changed), look)


LONG_NAMES = {
    "a name": "a" * 10**6,
    "a folder": "a" * 10**6 + "/latest",
    "folders": "a/" * 500_000 + "best",
    "upwards": "../" * 300_000,
    "a prior": "package:" + "a" * 10**6,
    "an id": "owner/" + "a" * 10**6,
    "an address": "https://" + "a" * 10**6,
    "one of OpenAI's": "a" * 10**6 + ".weights",
    "two files": ["a" * 10**6, "b" * 10**6],
    "many files": ["a"] * 10**6,
    "NUL": "a\x00b",
}


def load_by_name(source: Any) -> str:
    from rllib_minestudio import Policy
    from rllib_minestudio.errors import MineStudioError

    try:
        return str(Policy.load(source))
    except MineStudioError as error:
        assert len(str(error)) < 2000, "the message quotes all of the name"
        raise


def cases() -> Iterator[Case]:
    yield Case("honest", _changed(lambda folder: None), load, ACCEPTED)
    yield from descriptions()
    for name, source in LONG_NAMES.items():
        yield Case(f"a long name: {name}", lambda _, source=source: source, load_by_name)
    chance = random.Random(0)
    for _ in range(FLIPS):
        name, position, bit = chance.choice(_files()), chance.random(), chance.randrange(8)
        case = f"bit {bit} at {position:.2f} of {name}"
        yield Case(case, _changed(_flipped(name, position, bit)), load)
    for name in _files():
        for share in (0.0, 0.5, 0.99):
            yield Case(f"{name} cut at {share}", _changed(_cut(name, share)), load)
        if name != RECORD_FILE:
            missing = _changed(lambda folder, name=name: (folder / name).unlink())
            yield Case(f"{name} is missing", missing, load)
            for share in (0.0, 0.5):

                def old(folder: Path, name: str = name, share: float = share) -> None:
                    _cut(name, share)(folder)
                    (folder / RECORD_FILE).unlink()

                if name != "algorithm_state.pkl" and "pkl" not in name:
                    yield Case(f"no record, {name} cut at {share}", _changed(old), load)
    for name, changes in {
        "files of no size": {"files": {"a": "x"}},
        "files elsewhere": {"files": {"../../etc/passwd": 5}},
        "files no mapping": {"files": 5},
        "one more field": {"x": 1},
        "digests no mapping": {"digests": [1]},
        "a format of many digits": {"format": 10**4000},
    }.items():
        yield Case(f"record: {name}", _changed(_record(**changes)), load)
