"""The hook through which evaluation installs itself in the configs of algorithms.

Evaluation is a layer above algorithms, yet a config has to prepare for it. So
`import rllib_minestudio` registers a function here (`registration.py`), and configs call it.

The function is registered in every process that has a config: the driver, Tune's trials, EnvRunner
and learner actors. What these processes unpickle refers to a module of this package, and Python
imports the package before any of its modules. Neither this module nor the registration imports Ray
or torch; evaluation itself is imported when a config first needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Installer = Callable[[Any], None]
"""A function as `install_evaluation`."""

_installers: list[Installer] = []


def register(installer: Installer) -> None:
    """Register the function that prepares configs for evaluation, in place of any previous one."""
    _installers[:] = [installer]


def install_evaluation(config: Any) -> None:
    """Make a config of MineStudioPPO or MineStudioBC, not frozen, evaluate on our env runners.

    Raises:
        InvalidOptionsError: If it cannot be evaluated, with one sentence per problem.
    """
    (installer,) = _installers
    installer(config)
