"""`rllib model`: shows what a checkpoint holds, and converts it for MineStudio."""

from __future__ import annotations

import argparse
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rllib_minestudio import checkpoints
from rllib_minestudio.checkpoints.lookup import HELP
from rllib_minestudio.cli.flags import add_flags
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.console import stderr, stdout
from rllib_minestudio.foundation.options import Flag, option, shown
from rllib_minestudio.models.tempering import LEAST_TEMPERATURE, MOST_TEMPERATURE

if TYPE_CHECKING:
    from rllib_minestudio.checkpoints import Checkpoint
    from rllib_minestudio.models.policy_registry import PolicySummary
    from rllib_minestudio.models.vpt.weights import CheckpointSummary

DOES_NOT_FIT = 1
"""Exit status of `rllib model info` if the weights do not fit their own description."""

DESCRIPTION = f"""\
Inspect the weights of a policy, or convert them.

PATH is a Hugging Face id or folder of MineStudio's (config.json, model.safetensors), OpenAI's
.model file beside the .weights of the same name (or both), MineStudio's model.ckpt, a Lightning
checkpoint, a state dict, or a CHECKPOINT of this package, of whatever class its policy is.

{HELP}\
"""

EXAMPLES = """\
examples:
  rllib model info CraftJarvis/MineStudio_VPT.rl_for_shoot_animals_2x
  rllib model info foundation-model-2x.model rl-from-foundation-2x.weights
  rllib model export results/cow_vpt/best exported/
"""


@dataclass(frozen=True, kw_only=True)
class ModelInfoRequest:
    """Options of `rllib model info`."""

    paths: tuple[str, ...] = option(
        MISSING, "A checkpoint; OpenAI's are two files.", Flag("PATH", is_positional=True)
    )


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """Options of `rllib model export`."""

    path: str = option(MISSING, "A checkpoint.", Flag("PATH", is_positional=True))
    folder: str = option(
        MISSING, "Output folder, without a model in it yet.", Flag("FOLDER", is_positional=True)
    )
    own: bool = option(
        False,
        "Write network.json and model.safetensors, and playing.yaml if it is known what the "
        "policy played. Factored heads stay factored, which is smaller, but only this package "
        "can load it.",
    )
    memory: int | None = option(
        None,
        "With --own: remember only the last N frames; 1 keeps only the current frame.",
        least=1,
    )
    temperature: float | None = option(
        None,
        "With --own: divide the logits of the copy's actions by T; below 1, probable actions "
        "become more probable, and a clone strays less often.",
        Flag("T"),
        least=LEAST_TEMPERATURE,
        most=MOST_TEMPERATURE,
    )


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib model info` and `rllib model export`."""
    commands = parser.add_subparsers(dest="model_command", required=True, metavar="COMMAND")
    info_parser = commands.add_parser("info", help="print size, temperature, and which keys fit")
    add_flags(info_parser, ModelInfoRequest, info)
    export_parser = commands.add_parser(
        "export", help="write a folder that MineStudio loads, or a small one of our own"
    )
    add_flags(export_parser, ExportRequest, export)


def info(request: ModelInfoRequest) -> int:
    """Print what a checkpoint holds.

    Returns:
        0, or `DOES_NOT_FIT` if its tensors do not fit the network that it describes.
    """
    from rllib_minestudio.models.policy_registry import summarize_other
    from rllib_minestudio.models.vpt.weights import summarize

    paths = request.paths
    checkpoint = checkpoints.open(paths[0] if len(paths) == 1 else list(paths))
    other = summarize_other(checkpoint)
    if other is not None:
        for name, value in _rows_of_other(other).items():
            stdout.print(f"{name:12} {value}", markup=False)
        return 0
    summary = summarize(checkpoint)
    for name, value in _rows(summary).items():
        stdout.print(f"{name:12} {value}", markup=False)
    for problem in summary.problems:
        stderr.print(f"error: {problem}", style="red", markup=False)
    return DOES_NOT_FIT if summary.problems else 0


def export(request: ExportRequest) -> int:
    """Write a checkpoint as a folder for MineStudio, or for this package.

    Raises:
        InvalidOptionsError: Memory or temperature cannot be changed, for MineStudio or for this
            policy.
    """
    from rllib_minestudio.algorithms.saving import copy_playing
    from rllib_minestudio.models.vpt.config import size_in_words
    from rllib_minestudio.models.vpt.weights import export_checkpoint, save_checkpoint

    checkpoint, folder = checkpoints.open(request.path), request.folder
    memory, temperature = request.memory, request.temperature
    if request.own:
        content = _copy_other(checkpoint, folder, memory, temperature)
        if content is None:
            config = save_checkpoint(checkpoint, folder, memory, temperature)
            content = f"{size_in_words(config)}, {config.memory_length} frames of memory"
        files = "network.json, model.safetensors"
        files += " and playing.yaml" if copy_playing(checkpoint, Path(folder)) else ""
        stdout.print(f"{folder}: {files}, {content}", markup=False)
        return 0
    if memory is not None:
        raise InvalidOptionsError(["--memory shortens copies of our own form only: add --own."])
    if temperature is not None:
        raise InvalidOptionsError(
            [
                "--temperature is for copies of our own form only: add --own. For MineStudio, "
                "change `temperature` in the folder's config.json."
            ]
        )
    config = export_checkpoint(checkpoint, folder)
    stdout.print(
        f"{folder}: config.json and model.safetensors, {size_in_words(config)}. In MineStudio:",
        markup=False,
    )
    stdout.print(f'  VPTPolicy.from_pretrained("{folder}")', markup=False)
    return 0


def _copy_other(
    checkpoint: Checkpoint, folder: str, memory: int | None, temperature: float | None
) -> str | None:
    """Copy a checkpoint of a policy that is not VPT, and return its class; None if it is VPT.

    Raises:
        InvalidOptionsError: `memory` is given, which only VPT supports.
    """
    from rllib_minestudio.models.policy import copy_policy

    if checkpoint.other_policy is None:
        return None
    policy, options = checkpoint.other_policy
    if memory is not None:
        raise InvalidOptionsError(
            [f"--memory shortens VPT's memory only; {checkpoint.name} is a {policy}."]
        )
    copy_policy(checkpoint, Path(folder), policy, options, temperature)
    return policy


def _rows_of_other(summary: PolicySummary) -> dict[str, str]:
    return {
        "form": summary.form,
        "weights": str(summary.weights),
        "class": summary.policy,
        "options": shown(dict(summary.options)),
        "parameters": f"{summary.parameters:,} ({summary.dtype})",
        "tensors": f"{summary.tensors}",
    }


def _rows(summary: CheckpointSummary) -> dict[str, str]:
    from rllib_minestudio.models.vpt.config import size_in_words

    config = summary.config
    rows = {
        "form": summary.form,
        "weights": str(summary.weights),
        "size": size_in_words(config),
        "image": "{} x {} x {} (height, width, channels)".format(*config.img_shape),
        "memory": f"{config.memory_length} frames",
        "action head": config.action_head,
        "temperature": f"{config.temperature:g}" + ("" if summary.described else " (assumed)"),
        "parameters": f"{summary.parameters:,} ({summary.dtype})",
        "matched": f"{summary.matched} of {summary.expected} tensors",
        "ignored": ", ".join(summary.ignored) or "nothing",
    }
    if not summary.described:
        rows["note"] = "sizes read off the tensors; the image is assumed to be square"
    return rows
