"""A package's public names, loaded from their modules on first use (PEP 562)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def load_public_name(package: str, name: str, home_of: Mapping[str, str]) -> Any:
    """What a package's `__getattr__` is to return.

    Args:
        package: The package.
        name: What is asked for.
        home_of: Public name -> the module that has it.

    Raises:
        AttributeError: The package has no such public name.
        ImportError: Its module cannot be imported.
    """
    if name not in home_of:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    home = home_of[name]
    try:
        module = import_module(home)
    except AttributeError as error:
        # Another version of a library, as a rule. `from package import name` would take this error
        # for the answer that there is no such name, and say nothing else.
        raise ImportError(f"{home} cannot be imported: {error}", name=home) from error
    return getattr(module, name)
