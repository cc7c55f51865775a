"""Names of trials and of their folders, which tell the settings that a search gave them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rllib_minestudio.foundation.console import short

LONGEST = 130
"""Characters of a name without its date, as in Tune's own."""


def trial_name(trial: Any) -> str:
    """Return what a trial is called in tables and messages.

    Tune's own names hold the environment, for which its class has been replaced by a placeholder
    (`('__ref_ph', 'c2960e0c')`) when they are made.

    Args:
        trial: Tune's.
    """
    return f"{trial.trainable_name}_{trial.trial_id}"


def trial_folder(trial: Any) -> str:
    """Return the name of a trial's folder.

    Tune writes settings with four decimals: its names call every small learning rate 0.0000.

    Args:
        trial: Tune's.
    """
    settings = [f"{path}={short(value)}" for path, value in (trial.evaluated_params or {}).items()]
    name = "_".join([trial_name(trial), *([",".join(settings)] if settings else [])])
    # What folders cannot be called; Tune replaces the rest of it.
    return f"{name.replace('/', '.')[:LONGEST]}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
