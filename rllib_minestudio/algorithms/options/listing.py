"""Lists the options, for `rllib train file --help`; docs/options.md has the same as a table."""

from __future__ import annotations

import textwrap
from dataclasses import fields

import yaml

from rllib_minestudio.algorithms.options.cloning import CloningTraining
from rllib_minestudio.algorithms.options.ppo import PPOTraining
from rllib_minestudio.option_fields import (
    default_of,
    group_of,
    sentence_of,
)

ALGORITHMS = {"MineStudioPPO": PPOTraining, "MineStudioBC": CloningTraining}
"""Name of an algorithm -> what its config's `training` takes."""


def help_text() -> str:
    """Return what `--help` shows of the options of MineStudioPPO."""
    title = "options of MineStudioPPO, below `config` (docs/options.md has those of MineStudioBC):"
    return "\n".join([title, *_help_lines(PPOTraining)])


def _help_lines(options: type, prefix: str = "") -> list[str]:
    lines = []
    for option in fields(options):
        group = group_of(option)
        value = "" if group is not None else f"={as_yaml(default_of(option))}"
        sentence = textwrap.wrap(sentence_of(option), 92)
        lines += [f"  {prefix}{option.name}{value}", *(f"      {line}" for line in sentence)]
        if group is not None:
            lines += _help_lines(group, f"{option.name}.")
    return lines


def as_yaml(value: object) -> str:
    """Return a value as an experiment file has it."""
    value = list(value) if isinstance(value, tuple) else value
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()
