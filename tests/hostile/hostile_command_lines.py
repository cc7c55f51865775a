"""Command lines that ask for nonsense: one sentence and exit status 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from hostile_experiments import HONEST
from judging import Case

LINES = (
    "train file nothing.yaml",
    "train file .",
    "train file /dev/zero",
    "train file {long}",
    "train file tiny.txt",
    "train file tiny.yaml --set",
    "train file tiny.yaml --set lr",
    "train file tiny.yaml --set =1",
    "train file tiny.yaml --set lr=[",
    "train file tiny.yaml --set lr=.nan",
    "train file tiny.yaml --set lr=-1",
    "train file tiny.yaml --set grad_clip=-1",
    "train file tiny.yaml --set lr=${nothing}",
    "train file tiny.yaml --set lr=${oc.env:NOTHING}",
    "train file tiny.yaml --set num_env_runners=-5",
    "train file tiny.yaml --set nothing=1",
    "train file tiny.yaml --set model=5",
    "train file tiny.yaml --set config=5",
    "train file tiny.yaml --set env_config.callbacks.99.x=1",
    "train file tiny.yaml --set env_config.callbacks[0=1",
    "train file tiny.yaml --set stop=5",
    "train file tiny.yaml --set run=os.system",
    "train file tiny.yaml --stop training_iteration=.nan",
    "train file tiny.yaml --stop training_iteration=-1",
    "train file tiny.yaml --stop x=1",
    "train file tiny.yaml --stop training_iteration=abc",
    "train file tiny.yaml --num-samples 0",
    "train file tiny.yaml --num-samples 99999999999999",
    "train file tiny.yaml --num-samples x",
    "train file tiny.yaml --save-interval -1",
    "train file tiny.yaml --resume --out nothing",
    "train file tiny.yaml --resume --out /dev/null",
    "train",
    "nothing",
    "evaluate nothing",
    "evaluate .",
    "evaluate tiny.txt",
    "evaluate {long}",
    "evaluate /dev/null",
    "evaluate tiny.yaml --episodes 0",
    "evaluate tiny.yaml --episodes -1",
    "evaluate tiny.yaml --episodes 99999999999999999999",
    "evaluate tiny.yaml --seed -1",
    "evaluate tiny.yaml --seed 99999999999999999999",
    "evaluate tiny.yaml --max-steps 0",
    "evaluate tiny.yaml --filter (((",
    "evaluate tiny.yaml --filter return>=1e999",
    "evaluate tiny.yaml --filter {brackets}",
    "evaluate tiny.yaml --filter function:os.nothing",
    "evaluate tiny.yaml --only best_0",
    "evaluate tiny.yaml --kl-to prior",
    "evaluate tiny.yaml --workers -1",
    "evaluate tiny.yaml --envs 0",
    "evaluate tiny.yaml --gpus nan",
    "evaluate tiny.yaml --gpus -1",
    "evaluate tiny.yaml --set callbacks.99.x=1",
    "evaluate tiny.yaml --set obs_size.x=1",
    "evaluate tiny.yaml --record out --crf 99",
    "evaluate tiny.yaml --record out --fps 0",
    "evaluate tiny.yaml --record out --media x",
    "evaluate tiny.yaml --record out --format x",
    "evaluate tiny.yaml --out /dev/null/x",
    "evaluate tiny.yaml --compare nothing",
    "play nothing.yaml",
    "play tiny.yaml --agent nothing",
    "play tiny.yaml --agent .",
    "play tiny.yaml --episodes 0",
    "play tiny.yaml --episodes 99999999999",
    "play tiny.yaml --seed -1",
    "play tiny.yaml --seed 99999999999999999999",
    "record tiny.yaml --episodes 0 --out x",
    "record tiny.yaml --episodes 1 --out /dev/null/x",
    "record tiny.yaml --episodes 1 --out x --agent x",
    "record tiny.yaml --episodes 1 --out x --prey x",
    "record tiny.yaml --episodes 1 --out x --crf 99",
    "record tiny.yaml --episodes 1 --out x --seed -1",
    "record tiny.yaml --episodes 99999999999999 --out x",
    "model info nothing",
    "model info .",
    "model info /dev/null",
    "model info /dev/zero",
    "model info {long}",
    "model info a b c",
    "model info package:nothing",
    "model export nothing out",
    "model export package:hunter_nano /dev/null/x",
    "model export package:hunter_nano out --own --memory 0",
    "model export package:hunter_nano out --own --memory 99999999999999999999",
    "model export package:hunter_nano out --memory 1",
    "checkpoint info nothing",
    "checkpoint info .",
    "checkpoint info /dev/null",
    "checkpoint info {long}",
    "convert nothing.py",
    "engine install --embedded --dir /dev/null/x",
)


def run(given: tuple[str, list[str]]) -> str:
    """Run a command line; raise what says how it ended."""
    from rllib_minestudio.cli.main import main
    from rllib_minestudio.errors import MineStudioError

    folder, words = given
    os.chdir(folder)
    with open("printed", "w") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    try:
        status = main(words)
    except SystemExit as end:
        status = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    text = Path("printed").read_text(errors="replace")
    if "Traceback" in text or "bug of ours" in text:
        raise RuntimeError(text)
    if status == 2 and "error" in text:
        raise MineStudioError(text)
    return f"status {status}: {text[-300:]}"


def _prepared(line: str):
    def prepare(folder: Path) -> tuple[str, list[str]]:
        (folder / "tiny.yaml").write_text(yaml.safe_dump(HONEST))
        (folder / "tiny.txt").write_text("x")
        words = {"{long}": "x" * 5000, "{brackets}": "(" * 9000}
        return str(folder), [words.get(word, word) for word in line.split()]

    return prepare


def cases() -> Iterator[Case]:
    for line in LINES:
        yield Case(line, _prepared(line), run)
    # A name that is no text in any encoding.
    yield Case("a name in Latin-1", _prepared("model info \udce4\udcff"), run)
    yield Case("a name in Latin-1, train", _prepared("train file \udce4.yaml"), run)
