"""The forms in which VPT's weights are published, and how to read each without running code.

==========================================  ==========================================  ===========
form                                        what is given                               size from
==========================================  ==========================================  ===========
MineStudio, Hugging Face                    id, or folder with ``config.json`` and      config.json
                                            ``model.safetensors``
OpenAI                                      ``[x.model, y.weights]``, the ``.model``    .model
                                            beside a ``.weights`` of the same name, or
                                            a folder with one of each
MineStudio, training                        ``model.ckpt``, or its folder               tensors
Lightning                                   a ``.ckpt`` with a ``state_dict``           tensors
our own                                     checkpoint folder of an algorithm: its      network.json
                                            ``policy``; of a module: its pickles        the module's
                                                                                        options
our own, by name                            a trial's, run's or experiment's folder,    network.json
                                            ``latest`` or ``best`` behind one, or
                                            ``package:NAME`` (``checkpoints.lookup``)
our own, without pickle                     folder with ``network.json`` and            network.json
                                            ``model.safetensors``
a state dict                                file of ``torch.save`` or safetensors       tensors
==========================================  ==========================================  ===========
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rllib_minestudio.checkpoints.lookup import EXPECTED, locate, what_is_there
from rllib_minestudio.errors import CheckpointMismatchError
from rllib_minestudio.models.vpt.hub import CONFIG_FILE, TENSORS, is_hub_id, local_copy
from rllib_minestudio.models.vpt.tensor_files import read_safetensors, read_torch
from rllib_minestudio.option_checks import is_import_path, shown
from rllib_minestudio.safe_pickle import load_plain
from rllib_minestudio.small_files import read_json

WeightsSource = str | Path | Sequence[str | Path]
"""A path or Hugging Face id, or OpenAI's two paths: ``[.model, .weights]``."""

MODULE_FOLDERS = (
    ".",
    "default_policy",
    "rl_module/default_policy",
    "learner/rl_module/default_policy",
    "learner_group/learner/rl_module/default_policy",
)
"""Where below a checkpoint folder of RLlib the policy's own folder is."""

POLICY_FOLDER = "policy"
"""Where a checkpoint folder of ours keeps its policy without pickle."""

MODULE_STATE, MODULE_CLASS = "module_state.pkl", "class_and_ctor_args.pkl"
"""RLlib's file names for a module's weights and constructor arguments."""

NETWORK = "network.json"
"""Our file names for a network's options and its weights, where no pickle is wanted."""

POLICY, OPTIONS = "policy", "options"
"""Keys in `network.json` of a policy that is not VPT: its class, by name or import path, and its
`model_config`."""

MOST_NESTED = 32
"""Levels of mappings and lists in such a ``model_config``."""

PREFIXES = ("", "mine_policy.", "module.", "network.", "_orig_mod.")
"""What may stand before every name: of Lightning, DistributedDataParallel, RLlib, torch.compile."""

LANDMARK = "net.final_ln.weight"
"""A name that every VPT policy has; it tells the prefix."""


@dataclass(frozen=True)
class CheckpointFiles:
    """Where a checkpoint's parts are, and what it says about its network."""

    form: str
    """For people: which form this is."""

    weights: Path
    """The file with the tensors."""

    arguments: Mapping[str, Any] | None = None
    """Network arguments as MineStudio and OpenAI store them."""

    temperature: Any = 1.0
    """Of the action heads; read with ``arguments``. MineStudio's own default is 1."""

    options: Mapping[str, Any] | None = None
    """``model_config`` of our own checkpoints."""

    @property
    def other_policy(self) -> tuple[str, dict[str, Any]] | None:
        """Class and ``model_config`` of a policy that is not VPT; None if it is VPT.

        Raises:
            CheckpointMismatchError: Neither can be told.
        """
        if self.options is None or POLICY not in self.options:
            return None
        policy, options = self.options[POLICY], self.options.get(OPTIONS)
        # Whatever else it may be, the name is fit to be printed.
        is_name = isinstance(policy, str) and (policy.isidentifier() or is_import_path(policy))
        if not is_name or not isinstance(options, Mapping) or _is_deep(options, MOST_NESTED):
            raise CheckpointMismatchError(
                f"{str(self.weights)!r}: {NETWORK} beside it must have a name or import path as "
                f"{POLICY!r} and a mapping as {OPTIONS!r}, nested at most {MOST_NESTED} deep; got "
                f"{shown(policy)} and {shown(options)}."
            )
        return policy, dict(options)

    def tensors(self, device: str = "cpu") -> dict[str, Tensor]:
        """Reads the state dict under its plain names.

        Args:
            device: ``meta`` reads names, shapes and dtypes only.

        Raises:
            CheckpointMismatchError: The file is damaged or holds something else.
        """
        tensors = _without_prefix(_read(self.weights, device), self.weights)
        _check_sizes(tensors, self.weights)
        return tensors


def find_checkpoint(source: WeightsSource) -> CheckpointFiles:
    """Recognises the form of a checkpoint; downloads it if it is given as an id.

    Raises:
        CheckpointMismatchError: Nothing is there, or it has none of the forms.
    """
    if isinstance(source, Sequence) and not isinstance(source, str):
        if len(source) != 2:
            raise CheckpointMismatchError(
                f"weights {list(map(str, source))} must be one path or id, or OpenAI's two "
                f"files: [.model, .weights]."
            )
        return _openai(Path(source[0]), Path(source[1]))
    path = locate(source)
    if path.is_dir():
        return _folder(path)
    if path.is_file():
        return _file(path)
    if is_hub_id(str(source)):
        return _hugging_face(local_copy(str(source)))
    raise CheckpointMismatchError(
        f"weights {str(source)!r} do not exist: {what_is_there(path)} {EXPECTED}; or null, to "
        f"start training from random weights."
    )


def _folder(path: Path) -> CheckpointFiles:
    for folder in (path, path / POLICY_FOLDER):
        if (folder / NETWORK).is_file():
            return _plain(folder)
    if (path / TENSORS).is_file():
        return _hugging_face(path)
    for part in MODULE_FOLDERS:
        if (path / part / MODULE_STATE).is_file():
            return _own(path / part)
    if (path / "model.ckpt").is_file():
        return _file(path / "model.ckpt")
    models, weights = sorted(path.glob("*.model")), sorted(path.glob("*.weights"))
    if len(models) == len(weights) == 1:
        return _openai(models[0], weights[0])
    raise CheckpointMismatchError(
        f"weights {str(path)!r} is a folder without a checkpoint: {what_is_there(path)} {EXPECTED}."
    )


def _file(path: Path) -> CheckpointFiles:
    if path.suffix == ".model":
        return _openai(path, path.with_suffix(".weights"))
    if path.suffix == ".weights" and path.with_suffix(".model").is_file():
        return _openai(path.with_suffix(".model"), path)
    if path.name == MODULE_STATE:
        return _own(path.parent)
    if path.suffix == ".safetensors" and (path.parent / CONFIG_FILE).is_file():
        return _hugging_face(path.parent, path.name)
    return CheckpointFiles("state dict", path)


def _hugging_face(folder: Path, weights: str = TENSORS) -> CheckpointFiles:
    path = folder / CONFIG_FILE
    try:
        config = read_json(path)
        arguments = dict(config["policy_kwargs"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointMismatchError(
            f"{str(path)!r} cannot be read as a configuration of MineStudio's VPT policy "
            f"({type(error).__name__}: {error})."
        ) from error
    temperature = config.get("temperature", CheckpointFiles.temperature)
    return CheckpointFiles("Hugging Face folder", folder / weights, arguments, temperature)


def _openai(model: Path, weights: Path) -> CheckpointFiles:
    for path in (model, weights):
        if not path.is_file():
            raise CheckpointMismatchError(
                f"weights {str(path)!r} do not exist; OpenAI's checkpoints are two files: give "
                f"both as [.model, .weights], or keep them side by side under one name."
            )
    try:
        arguments = load_plain(model)["model"]["args"]
        network, head = arguments["net"]["args"], arguments.get("pi_head_opts") or {}
        temperature = head.get("temperature", CheckpointFiles.temperature)
        return CheckpointFiles("OpenAI .model and .weights", weights, dict(network), temperature)
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointMismatchError(
            f"{str(model)!r} is no .model file of OpenAI's VPT: it has no network arguments "
            f"({type(error).__name__}: {error})."
        ) from error


def _own(folder: Path) -> CheckpointFiles:
    # The pickle also names our module's and the spaces' classes, of which nothing is needed.
    arguments = load_plain(folder / MODULE_CLASS, others_inert=True)
    try:
        options = arguments["ctor_args_and_kwargs"][1]["model_config"]
    except (KeyError, IndexError, TypeError) as error:
        raise CheckpointMismatchError(
            f"{str(folder / MODULE_CLASS)!r} does not describe a module of this package."
        ) from error
    return CheckpointFiles("rllib_minestudio", folder / MODULE_STATE, options=dict(options or {}))


def _plain(folder: Path) -> CheckpointFiles:
    path = folder / NETWORK
    try:
        options = dict(read_json(path))
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointMismatchError(
            f"{str(path)!r} cannot be read as the options of a network "
            f"({type(error).__name__}: {error})."
        ) from error
    return CheckpointFiles("rllib_minestudio", folder / TENSORS, options=options)


def _read(path: Path, device: str) -> Any:
    """Returns whatever mapping a weights file holds."""
    if not path.is_file():
        raise CheckpointMismatchError(f"weights {str(path)!r} do not exist.")
    if path.suffix == ".safetensors":
        return read_safetensors(path, device)
    if path.suffix == ".pkl":
        content = load_plain(path)
        return _as_tensors(content, device) if isinstance(content, Mapping) else content
    return read_torch(path, device)


def _as_tensors(content: Mapping[str, Any], device: str) -> dict[str, Tensor]:
    return {
        name: torch.from_numpy(value).to(device)
        for name, value in content.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    }


def _is_deep(value: Any, most: int) -> bool:
    """Whether mappings and lists lie inside each other more than ``most`` times."""
    parts = value.values() if isinstance(value, Mapping) else value
    is_container = isinstance(value, Mapping | list)
    return is_container and (most == 0 or any(_is_deep(part, most - 1) for part in parts))


def _check_sizes(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuses tensors that are larger than their file: they repeat a few numbers for ever.

    Whoever copies them, or builds the network that they belong to, would run out of memory.
    """
    size = path.stat().st_size
    if any(tensor.layout != torch.strided for tensor in tensors.values()):
        raise CheckpointMismatchError(f"weights {str(path)!r} have sparse tensors.")
    if sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) > size:
        raise CheckpointMismatchError(
            f"weights {str(path)!r} are damaged: their tensors claim more numbers than the file "
            f"of {size:,} bytes can hold."
        )


def _without_prefix(state: Any, path: Path) -> dict[str, Tensor]:
    """Unwraps a state dict; keeps only tensors and only those under the policy's prefix."""
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]
    if not isinstance(state, Mapping) or not any(isinstance(v, Tensor) for v in state.values()):
        raise CheckpointMismatchError(
            f"weights {str(path)!r} hold a {type(state).__name__}, not a state dict "
            f"(names to tensors)."
        )
    prefix = next((p for p in PREFIXES if p + LANDMARK in state), "")
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in state.items()
        if isinstance(name, str) and name.startswith(prefix) and isinstance(tensor, Tensor)
    }
