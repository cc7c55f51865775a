"""The hook through which evaluation installs itself in the configs of algorithms.

Evaluation is built on algorithms, which know nothing of it; still a config has to prepare for it.
So `import rllib_minestudio` registers a function here (`registration.py`), and configs call it.

The hook is filled wherever there is a config: in the driver, in Tune's trials, in EnvRunner and
learner actors. What these processes unpickle names a module of this package, and Python imports
the package before any of its modules. Neither this module nor the registration imports Ray or
torch; evaluation itself is imported when a config first asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Installer = Callable[[Any], None]
"""Has a config, of MineStudioPPO or MineStudioBC and not frozen, evaluate on our env runners.

Raises `InvalidOptionsError` with one sentence per problem.
"""

_installers: list[Installer] = []


def register(installer: Installer) -> None:
    """Say what is called when a config is to evaluate; replaces what was registered before."""
    _installers[:] = [installer]


def install_evaluation(config: Any) -> None:
    """Have a config evaluate on our env runners.

    Args:
        config: Of MineStudioPPO or MineStudioBC, not frozen.

    Raises:
        InvalidOptionsError: It cannot be evaluated; with one sentence per problem.
    """
    (installer,) = _installers
    installer(config)
