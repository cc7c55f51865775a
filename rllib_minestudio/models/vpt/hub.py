"""Hugging Face ids as names of weights, downloaded only when asked for by id."""

from __future__ import annotations

import re
from pathlib import Path

from rllib_minestudio.errors import CheckpointMismatchError

ID_PATTERN = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""``owner/name``."""

FILE_SUFFIXES = {".pt", ".pth", ".bin", ".ckpt", ".weights", ".model", ".safetensors", ".pkl"}
"""Names that end so are files: a mistyped path must not become a question to the network."""

CONFIG_FILE, TENSORS = "config.json", "model.safetensors"
WANTED_FILES = [CONFIG_FILE, TENSORS]


def is_hub_id(name: str) -> bool:
    """Whether ``name`` can only be meant as an id: not a path here, nor in an existing folder."""
    if not ID_PATTERN.fullmatch(name) or Path(name).suffix in FILE_SUFFIXES:
        return False
    return not Path(name).exists() and not Path(name).parent.exists()


def local_copy(hub_id: str) -> Path:
    """Returns the folder of a model, downloading what the local cache lacks, with progress.

    Args:
        hub_id: Such as ``CraftJarvis/MineStudio_VPT.rl_for_shoot_animals_2x``.

    Raises:
        CheckpointMismatchError: huggingface_hub is not installed, the machine is offline and the
            model not in the cache, or there is no such model.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise CheckpointMismatchError(
            f"weights {hub_id!r} look like a Hugging Face id, for which the package "
            f"huggingface_hub is needed: pip install huggingface_hub. If a path is meant, it "
            f"does not exist."
        ) from error
    try:
        folder = Path(snapshot_download(hub_id, allow_patterns=WANTED_FILES))
    # Its exceptions come from several libraries; every one of them means the same here.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointMismatchError(
            f"weights {hub_id!r} are no path on this machine, and as a Hugging Face id they could "
            f"not be fetched ({type(error).__name__}: {reason}). Check the spelling and the "
            f"network connection, or fetch the files {' and '.join(WANTED_FILES)} elsewhere and "
            f"give their folder as weights."
        ) from error
    missing = [name for name in WANTED_FILES if not (folder / name).is_file()]
    if missing:
        raise CheckpointMismatchError(
            f"Hugging Face model {hub_id!r} has no {' and no '.join(missing)}: it is not a VPT "
            f"model of MineStudio's."
        )
    return folder
