"""From a config module to the text of an experiment file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from rllib_minestudio.cli.convert.environment import translate_env
from rllib_minestudio.cli.convert.online_dict import (
    Translation,
    translate_options,
    translate_policy,
)
from rllib_minestudio.cli.convert.stand_ins import Config


def translate(module: Config) -> Translation:
    """Translate all that a config says."""
    translation = Translation()
    translation.left_out.extend(module.problems)
    for package in module.missing:
        translation.left_out.append(f"{package} is not installed: what the file takes from it")
    if module.online_dict is None:
        translation.left_out.append("there is no online_dict")
    else:
        translate_options(translation, module.online_dict)
    if module.env is not None:
        translate_env(translation, module.env)
    if module.policy is not None:
        translate_policy(translation, module.policy)
    return translation


def as_yaml(translation: Translation, source: Path) -> str:
    """Write a translation as an experiment file, with what it lacks as comments at the top.

    Args:
        translation: What is written.
        source: The Python file that it comes from.
    """
    lines = [f"# Translated from {source.name} by rllib_minestudio."]
    for title, sentences in (
        ("Not translated; see to it by hand:", translation.left_out),
        ("Not needed, or done otherwise, here:", translation.not_needed),
    ):
        if sentences:
            lines += ["#", f"# {title}"]
            lines += [f"# - {' '.join(sentence.split())}" for sentence in sentences]
    experiment = _without_empty_sections(translation.experiment)
    body = yaml.safe_dump(
        {experiment_name(source): experiment}, sort_keys=False, width=100, allow_unicode=True
    )
    return "\n".join([*lines, "", body])


def experiment_name(source: Path) -> str:
    """Name the experiment that is translated from a file."""
    return re.sub(r"\W+", "_", source.stem)


def _without_empty_sections(section: dict[str, Any]) -> dict[str, Any]:
    """Leave out mappings that say nothing, at any depth."""
    kept = {
        key: _without_empty_sections(value) if isinstance(value, dict) else value
        for key, value in section.items()
    }
    return {key: value for key, value in kept.items() if value != {}}
