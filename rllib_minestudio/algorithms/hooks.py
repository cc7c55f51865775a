"""The hooks through which configs of algorithms use the layers above them.

Evaluation and experiment files are layers above algorithms. Yet a config has to prepare for the
former, and `MineStudioPPOConfig.from_example` reads the latter. So `import rllib_minestudio`
registers a function for each here (`registration.py`), and configs call them.

They are registered in every process that has a config: the driver, Tune's trials, EnvRunner and
learner actors. What these processes unpickle refers to a module of this package, and Python imports
the package before any of its modules. Neither this module nor the registration imports Ray or
torch; the layers above are imported when a config first needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Installer = Callable[[Any], None]
"""A function as `install_evaluation`."""
ExampleReader = Callable[[str, type], Any]
"""A function as `config_from_example`."""


class _Hooks(NamedTuple):
    install_evaluation: Installer
    config_from_example: ExampleReader


_registered: list[_Hooks] = []


def register(installer: Installer, reader: ExampleReader) -> None:
    """Register the functions that are called below, in place of any previous ones."""
    _registered[:] = [_Hooks(installer, reader)]


def install_evaluation(config: Any) -> None:
    """Make a config of MineStudioPPO or MineStudioBC, not frozen, evaluate on our env runners.

    Raises:
        InvalidOptionsError: If it cannot be evaluated, with one sentence per problem.
    """
    _registered[0].install_evaluation(config)


def config_from_example(name: str, config_class: type) -> Any:
    """Return the config of an experiment file, an object of the given class.

    Args:
        name: Name of an example, or path of a file.
        config_class: MineStudioPPOConfig or MineStudioBCConfig.

    Raises:
        ExperimentFileError: There is no such file, or it cannot be read.
        InvalidOptionsError: Something in it is wrong, or it has no config of this class.
    """
    return _registered[0].config_from_example(name, config_class)
