"""A package's public names, loaded from their modules on first use (PEP 562)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def load_public_name(package: str, name: str, home_of: Mapping[str, str]) -> Any:
    """Return what a package's `__getattr__` should return.

    Args:
        package: Name of the package.
        name: The requested name.
        home_of: Public name -> module that defines it.

    Raises:
        AttributeError: The package has no such public name.
        ImportError: The module cannot be imported.
    """
    if name not in home_of:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    home = home_of[name]
    try:
        module = import_module(home)
    except AttributeError as error:
        # Usually a library of the wrong version. `from package import name` would take this error
        # to mean that there is no such name, and hide the cause.
        raise ImportError(f"{home} cannot be imported: {error}", name=home) from error
    return getattr(module, name)
