"""From the names a person writes to the things they stand for."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_checks import unknown_name


def make_importable(folder: Path) -> None:
    """Let dotted names reach modules in `folder`, here and in Ray's workers."""
    sys.path.insert(0, str(folder))
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), inherited]))


def load_object(name: str, known: Mapping[str, str], kind: str, path: str) -> Any:
    """Import what a short name or a dotted path stands for.

    Args:
        name: A key of `known`, or `package.module.Name` (also `package.module:Name`).
        known: Short names and the dotted paths they stand for.
        kind: What is being looked for, for the message.
        path: Dotted path of the option, for the message.

    Raises:
        InvalidOptionsError: There is no such thing.
    """
    dotted = known.get(name, name).replace(":", ".")
    module, _, attribute = dotted.rpartition(".")
    if not module:
        raise InvalidOptionsError(
            unknown_name(kind, name, sorted(known), path)
            + " Anything else is named by its dotted import path."
        )
    try:
        return getattr(import_module(module), attribute)
    # Importing runs the module, which may raise anything.
    except Exception as error:
        raise InvalidOptionsError(f"{path}: cannot import {kind} {name!r}: {error}.") from error
