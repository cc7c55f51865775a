"""Translation of a whole config, and the text of the experiment file."""

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
    """Translate the options, environment and policy of a config."""
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
    """Return the text of an experiment file, with what it lacks as comments at the top.

    Args:
        translation: The translation.
        source: The Python file that was translated.
    """
    lines = [f"# Translated from {source.name} by rllib_minestudio."]
    for title, sentences in (
        ("Not translated; add it by hand:", translation.left_out),
        ("Not needed, or done differently, here:", translation.not_needed),
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
    """Return the name of the experiment that is translated from a file."""
    return re.sub(r"\W+", "_", source.stem)


def _without_empty_sections(section: dict[str, Any]) -> dict[str, Any]:
    """Remove empty mappings, at any depth."""
    kept = {
        key: _without_empty_sections(value) if isinstance(value, dict) else value
        for key, value in section.items()
    }
    return {key: value for key, value in kept.items() if value != {}}
