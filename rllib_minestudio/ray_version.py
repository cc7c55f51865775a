"""Which versions of Ray this package works with: it uses much that Ray keeps to itself."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires, version
from types import ModuleType

from rllib_minestudio.errors import DependencyError
from rllib_minestudio.import_hooks import when_imported


def install() -> None:
    """Check the version as soon as RLlib is imported, before anything of it is used."""
    when_imported("ray.rllib", _check)


def _check(_: ModuleType) -> None:
    """Look at the version of Ray that is installed.

    Raises:
        DependencyError: It is another than this package was written for.
    """
    from packaging.requirements import Requirement

    try:
        required, found = requires("rllib_minestudio") or (), version("ray")
    except PackageNotFoundError:  # run from its sources
        return
    for requirement in map(Requirement, required):
        if requirement.name == "ray" and not requirement.specifier.contains(found, True):
            raise DependencyError(
                f"Ray {found} is installed, and this version of rllib_minestudio works with "
                f"{requirement.specifier} only: pip install 'ray[rllib]{requirement.specifier}'"
            )
