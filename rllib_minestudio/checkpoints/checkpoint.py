"""Opening a checkpoint: finding it, recognising its form, and describing its policy.

`open` recognises the forms in which policies are published, and reads each without running code:

==========================================  ==========================================  ===========
form                                        source                                      size from
==========================================  ==========================================  ===========
MineStudio, Hugging Face                    id, or folder with `config.json` and      config.json
                                            `model.safetensors`
OpenAI                                      `[x.model, y.weights]`, the `.model`    .model
                                            beside a `.weights` of the same name, or
                                            a folder with one of each
MineStudio, training                        `model.ckpt`, or its folder               tensors
Lightning                                   a `.ckpt` with a `state_dict`           tensors
our own                                     checkpoint folder of an algorithm: its      network.json
                                            `policy`; of a module: its pickles        the module's
                                                                                        options
our own, by name                            a trial's, run's or experiment's folder,    network.json
                                            `latest` or `best` behind one, or
                                            `package:NAME` (`lookup.py`)
our own, without pickle                     folder with `network.json` and            network.json
                                            `model.safetensors`
a state dict                                file of `torch.save` or safetensors       tensors
==========================================  ==========================================  ===========
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_minestudio.checkpoints.lookup import (
    CONFIG_FILE,
    EXPECTED,
    TENSORS,
    is_hub_id,
    is_shipped,
    local_copy,
    locate,
    what_is_there,
)
from rllib_minestudio.checkpoints.record import RECORD_FILE, check_digests, require_own_digest
from rllib_minestudio.checkpoints.trust import is_sealed
from rllib_minestudio.errors import CheckpointMismatchError
from rllib_minestudio.foundation.files import SmallFileError, read_text
from rllib_minestudio.foundation.options import shown

if TYPE_CHECKING:
    from rllib_minestudio.checkpoints.tensor_files import Tensors

Source = str | Path | Sequence[str | Path]
"""A path or name (`lookup.HELP`), a Hugging Face id, or OpenAI's two paths: [.model, .weights]."""

VPT = "VPT"
"""The class of all policies in MineStudio's and OpenAI's forms."""

MODULE_FOLDERS = (
    ".",
    "default_policy",
    "rl_module/default_policy",
    "learner/rl_module/default_policy",
    "learner_group/learner/rl_module/default_policy",
)
"""Possible paths of the policy's folder within a checkpoint folder of RLlib."""

MODULE_PATH = Path(MODULE_FOLDERS[-1])
"""Path of the policy's module in an Algorithm checkpoint."""

MODULE_STATE, MODULE_CLASS = "module_state.pkl", "class_and_ctor_args.pkl"
"""RLlib's file names for a module's weights and constructor arguments."""

POLICY_FOLDER = "policy"
"""Folder of the policy, stored without pickle, in a checkpoint folder of ours."""

NETWORK = "network.json"
"""File of a network's options, beside its weights in `TENSORS`, for policies without pickle."""

POLICY, OPTIONS = "policy", "options"
"""Keys in `network.json` of a policy that is not VPT: its class, by name or import path, and its
`model_config`."""

PLAYING_FILE = "playing.yaml"
"""Beside `network.json`: the algorithm, its environment and all else that playing depends on."""


@dataclass(frozen=True, eq=False)
class PolicyFiles:
    """The description of a policy in the files of a checkpoint.

    Attributes:
        form: Name of the checkpoint's form, for people.
        weights: The file with the tensors.
        policy_class: Name or import path of the policy's class; None if the files do not say.
        options: Its `model_config`; None if `arguments` or the tensors determine the network.
        arguments: The network's arguments as MineStudio and OpenAI store them, else None.
        temperature: Temperature of the action heads, read with `arguments`; MineStudio's default
            is 1.
        has_digests: Whether the file with the tensors holds digests of them and of `network.json`.
    """

    form: str
    weights: Path
    policy_class: str | None = None
    options: Mapping[str, Any] | None = None
    arguments: Mapping[str, Any] | None = None
    temperature: Any = 1.0
    has_digests: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint(PolicyFiles):
    """A checkpoint that was found, with access to its tensors.

    It holds plain data only: `models.policies.policy_of_checkpoint` imports the policy's class, and
    `evaluation.played_config.played_spaces` derives the spaces from `playing`.

    Attributes:
        name: Name in messages and summaries: the path that was found, or the given name or id.
        path: The folder or file that was found.
        verified: Whether it has been compared with its record, if it has one.
        trusted: Whether the classes and paths that it names may be used: it is this user's own (see
            `trust.py`), comes with this package, or the user says so.
    """

    name: str
    path: Path
    verified: bool
    trusted: bool = False

    def __str__(self) -> str:
        return self.name

    def __fspath__(self) -> str:
        """Return the path, for policies that read files of their own kind."""
        return str(self.path)

    @property
    def other_policy(self) -> tuple[str, dict[str, Any]] | None:
        """Class and `model_config` of a policy that is declared not to be VPT; else None."""
        if self.policy_class is None or self.policy_class == VPT:
            return None
        return self.policy_class, dict(self.options or {})

    def tensors(self) -> Tensors:
        """Return the state dict without prefixes in its names; the file is read at the first call.

        Raises:
            CheckpointMismatchError: The file is missing, damaged, or holds something else.
        """
        return self._tensors

    @cached_property
    def _tensors(self) -> Tensors:
        from rllib_minestudio.checkpoints.tensor_files import read_tensors

        description = self.weights.parent / NETWORK
        return read_tensors(self.weights, description if self.has_digests else None)

    @property
    def playing_file(self) -> Path | None:
        """The path of `playing.yaml`; None if there is none."""
        places = (self.path / POLICY_FOLDER, self.path)
        return next((f for place in places if (f := place / PLAYING_FILE).is_file()), None)

    @cached_property
    def playing(self) -> Mapping[str, Any] | None:
        """The contents of `playing.yaml`; None if there is none.

        Raises:
            CheckpointMismatchError: It is damaged.
        """
        file = self.playing_file
        if file is None:
            return None
        from rllib_minestudio.checkpoints.formats import PlayingDocument
        from rllib_minestudio.foundation.documents import given, parse_document, read_plain

        try:
            require_own_digest(read_text(file))
            return given(parse_document(read_plain(file), PlayingDocument))
        except (OSError, SmallFileError) as error:
            raise CheckpointMismatchError(f"{str(file)!r} is damaged: {error}.") from error

    @property
    def looks(self) -> Mapping[str, Any] | None:
        """The looks of the frames it was trained on, see `env.voxel.contract`; None if none.

        Raises:
            CheckpointMismatchError: `playing.yaml` is damaged.
        """
        return None if self.playing is None else self.playing.get("looks")


def open(source: Source | Checkpoint, *, verified: bool = False, trust: bool = False) -> Checkpoint:
    """Find a checkpoint, download it if it is given as an id, and recognise its form.

    Args:
        source: A path, name or id, or an open checkpoint, which is returned.
        verified: Whether to compare all files of a training checkpoint with its record first, as
            should be done before its policy acts. Other forms have no record.
        trust: Whether to use the classes and paths that it names even if somebody else wrote it.

    Raises:
        CheckpointMismatchError: There is no checkpoint, its form is unknown, or the system refuses
            to read it.
        CheckpointError: A training checkpoint is damaged.
    """
    try:
        return _opened(source, verified, trust)
    except OSError as error:  # a name that is too long, a folder that may not be listed
        raise CheckpointMismatchError(
            f"weights {_quoted(source)} cannot be opened: {error.strerror or error}. {EXPECTED}."
        ) from error


def _opened(source: Source | Checkpoint, verified: bool, trust: bool) -> Checkpoint:
    """Do as `open`, but let the system's errors pass.

    Raises:
        OSError: The system refuses to read a file or folder.
    """
    if isinstance(source, Checkpoint):
        if verified and not source.verified:
            _compare_with_record(source.path)
            source = replace(source, verified=True)
        return replace(source, trusted=True) if trust and not source.trusted else source
    if not isinstance(source, str | Path):
        is_pair = isinstance(source, Sequence) and len(source) == 2
        if not is_pair or not all(isinstance(part, str | Path) for part in source):
            raise CheckpointMismatchError(
                f"weights {shown(source)} must be one path or id, or OpenAI's two files: "
                "[.model, .weights]."
            )
        files = _openai(Path(source[0]), Path(source[1]))
        return Checkpoint(**vars(files), name=str(source), path=files.weights, verified=True)
    path = locate(source)
    name = str(source if is_shipped(source) else path)
    if not path.exists() and is_hub_id(str(source)):
        path = local_copy(name)
    if verified:
        _compare_with_record(path)
    if path.is_dir():
        files = _folder(path)
    elif path.is_file():
        files = _file(path)
    else:
        raise CheckpointMismatchError(
            f"weights {_quoted(source)} do not exist: {what_is_there(path)} {EXPECTED}; or null, "
            f"to start training from random weights."
        )
    trusted = trust or is_shipped(source) or _is_own(path, files)
    return Checkpoint(**vars(files), name=name, path=path, verified=verified, trusted=trusted)


def _is_own(path: Path, files: PolicyFiles) -> bool:
    """Return whether this user has written a checkpoint: its policy, or else all of it."""
    folder = files.weights.parent
    return is_sealed(folder if (folder / NETWORK).is_file() else path)


def _quoted(source: Source | Checkpoint) -> str:
    """Return a source as messages show it."""
    return shown(str(source) if isinstance(source, str | Path | Checkpoint) else source)


def _compare_with_record(path: Path) -> None:
    """Check a training checkpoint for damage before anything in it is read.

    Raises:
        CheckpointError: It is damaged.
    """
    if (path / RECORD_FILE).is_file() or (path / MODULE_PATH).is_dir():
        check_digests(path)


def _folder(path: Path) -> PolicyFiles:
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


def _file(path: Path) -> PolicyFiles:
    if path.suffix == ".model":
        return _openai(path, path.with_suffix(".weights"))
    if path.suffix == ".weights" and path.with_suffix(".model").is_file():
        return _openai(path.with_suffix(".model"), path)
    if path.name == MODULE_STATE:
        return _own(path.parent)
    if path.suffix == ".safetensors" and (path.parent / CONFIG_FILE).is_file():
        return _hugging_face(path.parent, path.name)
    return PolicyFiles("state dict", path)


def _hugging_face(folder: Path, weights: str = TENSORS) -> PolicyFiles:
    from rllib_minestudio.checkpoints.formats import HuggingFaceDocument
    from rllib_minestudio.foundation.documents import read_document

    path = folder / CONFIG_FILE
    try:
        config = read_document(path, HuggingFaceDocument)
    except (OSError, SmallFileError) as error:
        raise CheckpointMismatchError(
            f"{str(path)!r} cannot be read as a configuration of MineStudio's VPT policy: {error}."
        ) from error
    return PolicyFiles(
        "Hugging Face folder",
        folder / weights,
        VPT,
        arguments=config.policy_kwargs,
        temperature=config.temperature,
    )


def _openai(model: Path, weights: Path) -> PolicyFiles:
    from rllib_minestudio.foundation.pickles import load_plain

    for path in (model, weights):
        if not path.is_file():
            raise CheckpointMismatchError(
                f"weights {str(path)!r} do not exist; OpenAI's checkpoints are two files: pass "
                f"both as [.model, .weights], or keep them side by side under one name."
            )
    try:
        arguments = _mapping(load_plain(model), "model", "args")
        head = arguments.get("pi_head_opts")
        temperature = {} if head is None else _mapping(head)
        return PolicyFiles(
            "OpenAI .model and .weights",
            weights,
            VPT,
            arguments=_mapping(arguments, "net", "args"),
            temperature=temperature.get("temperature", PolicyFiles.temperature),
        )
    except (KeyError, TypeError) as error:
        raise CheckpointMismatchError(
            f"{str(model)!r} is not a .model file of OpenAI's VPT: it has no network arguments "
            f"({type(error).__name__}: {error})."
        ) from error


def _own(folder: Path) -> PolicyFiles:
    from rllib_minestudio.foundation.pickles import load_plain

    # The pickle also names the classes of our module and the spaces, which are not needed.
    arguments = load_plain(folder / MODULE_CLASS, others_inert=True)
    try:
        _, keywords = _mapping(arguments)["ctor_args_and_kwargs"]
        options = _mapping(keywords)["model_config"]
        options = {} if options is None else _mapping(options)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointMismatchError(
            f"{str(folder / MODULE_CLASS)!r} does not describe a module of this package "
            f"({type(error).__name__}: {error})."
        ) from error
    return PolicyFiles("rllib_minestudio", folder / MODULE_STATE, options=options)


def _plain(folder: Path) -> PolicyFiles:
    from rllib_minestudio.checkpoints.formats import NetworkDocument, VPTDocument
    from rllib_minestudio.foundation.documents import given, parse_document, read_plain

    path = folder / NETWORK
    try:
        facts = read_plain(path)
        if isinstance(facts, dict) and POLICY in facts:
            other = parse_document(facts, NetworkDocument)
            policy_class, options = other.policy, other.options
        else:
            policy_class, options = VPT, given(parse_document(facts, VPTDocument))
    except (OSError, SmallFileError) as error:
        raise CheckpointMismatchError(
            f"{str(path)!r} cannot be read as the options of a network: {error}."
        ) from error
    return PolicyFiles(
        "rllib_minestudio", folder / TENSORS, policy_class, options, has_digests=True
    )


def _mapping(value: Any, *keys: str) -> dict[str, Any]:
    """Return what is below keys in nested mappings, as a dict.

    Nothing else is turned into a dict: a file may hold a list of pairs, or an array, which raises
    other exceptions than a mapping does.

    Raises:
        KeyError: A key is missing.
        TypeError: What is there is no mapping.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{shown(value)} is not a mapping")
    return _mapping(value[keys[0]], *keys[1:]) if keys else dict(value)
