"""Attacks by the thousand: every option with every strange value, and bits flipped anywhere.

Whether a flipped bit is noticed is chance where nothing is signed; that it ends in a traceback, a
crash, a wait or gigabytes is not. Values that no option has must be refused.
"""

from __future__ import annotations

import io
import pickle
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import hostile_experiments
import hostile_recordings
import hostile_weights
import torch
import yaml
from judging import ACCEPTED, REFUSED, Case
from safetensors.torch import save

from rllib_minestudio.algorithms.options import CloningOptions, PPOOptions
from rllib_minestudio.algorithms.policy_config import numbers_of
from rllib_minestudio.experiments.experiment_file import EXPERIMENT_KEYS
from rllib_minestudio.models.vpt.config import VPTConfig

NOT_A_NUMBER = (float("nan"), "x", "", [], {}, [[0, "x"]], {"a": 1}, "a" * 10_000)
NO_OPTION_HAS = (float("nan"), "a" * 10_000, {"\x00": 1}, [{"a": [float("nan")]}])
EXTREME = (float("inf"), -float("inf"), 1e308, -1, -0.5, 0, 10**18, -(10**18), True, None)

EITHER = "refused or accepted"
FLIPS = 250


def options() -> Iterator[Case]:
    """Numbers of the algorithm, fields of the network, and the experiment's own keys."""
    for name in sorted(numbers_of(PPOOptions) | numbers_of(CloningOptions)):
        key = {"lambda_": "lambda"}.get(name, name)
        for value in NOT_A_NUMBER:
            yield _option(f"config.{key}", value, REFUSED)
        for value in EXTREME:
            yield _option(f"config.{key}", value, EITHER)
    for value in (*NO_OPTION_HAS, *EXTREME):
        yield _option("config.module_class", value, REFUSED)
    for field in fields(VPTConfig):
        for value in NO_OPTION_HAS:
            yield _option(f"config.model.{field.name}", value, REFUSED)
        for value in EXTREME:
            yield _option(f"config.model.{field.name}", value, EITHER)
    for key in EXPERIMENT_KEYS:
        for value in NO_OPTION_HAS:
            yield _option(key, value, REFUSED)
        for value in EXTREME:
            yield _option(key, value, EITHER)
    for key in ("seed", "obs_size", "render_size", "num_empty_frames", "action_type", "engine"):
        for value in NO_OPTION_HAS:
            yield _option(f"config.env_config.{key}", value, REFUSED)
        for value in EXTREME:
            yield _option(f"config.env_config.{key}", value, EITHER)


def _option(path: str, value: Any, expected: str) -> Case:
    name = f"{path}: {str(value)[:40]!r}"
    return Case(name, hostile_experiments._with(path, value), hostile_experiments.plan, expected)


def recordings() -> Iterator[Case]:
    """A recording of ours in which one bit is another."""
    chance = random.Random(1)
    for number in range(FLIPS):

        def prepare(folder: Path, seed: int = chance.randrange(2**31)) -> str:
            episode = hostile_recordings.honest(folder)
            chance = random.Random(seed)
            file = chance.choice(sorted(p for p in episode.rglob("*") if p.is_file()))
            file.write_bytes(_flipped(file.read_bytes(), chance))
            return str(folder)

        yield Case(f"recording {number}", prepare, hostile_recordings.read, EITHER)


def weights() -> Iterator[Case]:
    """Weights in each format in which a few bits are others."""
    chance = random.Random(2)
    state = hostile_weights.state()
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    formats = {
        "a.pt": _torch_file(state, True),
        "b.pt": _torch_file(state, False),
        "c.safetensors": save(state),
        "d.pkl": pickle.dumps(arrays),
    }
    for number in range(FLIPS):
        name = chance.choice(sorted(formats))
        content = formats[name]
        for _ in range(chance.choice((1, 3))):
            # Headers and pickles lie in the first bytes, a zip's table in the last.
            content = _flipped(content, chance, within=chance.choice((300, None, -300)))

        def prepare(folder: Path, name: str = name, content: bytes = content) -> str:
            (folder / name).write_bytes(content)
            return str(folder / name)

        yield Case(f"weights {number}: {name}", prepare, hostile_weights.look, EITHER)


def _torch_file(state: dict[str, torch.Tensor], zipped: bool) -> bytes:
    stream = io.BytesIO()
    torch.save(state, stream, _use_new_zipfile_serialization=zipped)
    return stream.getvalue()


def checkpoints() -> Iterator[Case]:
    """Files of a checkpoint in which bits are others, and the record is gone that would tell."""
    import hostile_checkpoints

    chance = random.Random(3)
    files = [name for name in hostile_checkpoints._files() if name.startswith("policy/")]
    for number in range(FLIPS // 2):
        name = chance.choice(files)

        def prepare(folder: Path, name: str = name, seed: int = chance.randrange(2**31)) -> str:
            place = folder / "checkpoint"
            shutil.copytree(hostile_checkpoints._written().name, place)
            (place / hostile_checkpoints.RECORD_FILE).unlink()
            file = place / name
            file.write_bytes(_flipped(file.read_bytes(), random.Random(seed), within=400))
            return str(place)

        yield Case(f"checkpoint {number}: {name}", prepare, hostile_checkpoints.load, EITHER)


def documents() -> Iterator[Case]:
    """Files of every format that is read back, wrong in one place: a quarter of the attacks."""
    import hostile_documents

    for case in islice(hostile_documents.cases(), 0, None, 4):
        yield case._replace(expected=EITHER)


@cache
def _honest() -> str:
    return yaml.safe_dump(hostile_experiments.HONEST)


def experiments() -> Iterator[Case]:
    """An experiment file in which characters are others, missing, or there twice."""
    chance = random.Random(4)
    alphabet = "\"'{}[]:,&*!|>%@`#-?\t\n\x00 ~^$.0x1eE" + "\u2028\ud7ff"
    for number in range(FLIPS):
        text = list(_honest())
        for _ in range(chance.choice((1, 2, 8))):
            place = chance.randrange(len(text))
            text[place] = chance.choice((chance.choice(alphabet), "", text[place] * 2))
        prepare: Callable[[Path], Any] = hostile_experiments._text("".join(text))
        yield Case(f"experiment {number}", prepare, hostile_experiments.plan, EITHER)


def _flipped(content: bytes, chance: random.Random, within: int | None = None) -> bytes:
    """Flip a bit anywhere, in the first or, if `within` is negative, in the last bytes."""
    if not content:
        return content
    size = min(abs(within or len(content)), len(content))
    place = chance.randrange(size)
    place = len(content) - 1 - place if within is not None and within < 0 else place
    changed = bytearray(content)
    changed[place] ^= 1 << chance.randrange(8)
    return bytes(changed)


def ended_well(case: Case, kind: str) -> bool:
    """Say whether an attack ended as it may."""
    return kind in (REFUSED, ACCEPTED) if case.expected == EITHER else kind == case.expected
