"""Names of trials and of their folders, which contain the searched settings."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rllib_minestudio.foundation.console import short

LONGEST = 130
"""Most characters of a name without its date, as in Tune."""


def trial_name(trial: Any) -> str:
    """Return a trial's name for tables and messages.

    Tune's own names contain the environment class, which is a placeholder at that point
    (`('__ref_ph', 'c2960e0c')`).
    """
    return f"{trial.trainable_name}_{trial.trial_id}"


def trial_folder(trial: Any) -> str:
    """Return the name of a trial's folder.

    Tune would write settings with four decimals, and so every small learning rate as 0.0000.
    """
    settings = [f"{path}={short(value)}" for path, value in (trial.evaluated_params or {}).items()]
    name = "_".join([trial_name(trial), *([",".join(settings)] if settings else [])])
    # Tune replaces the other characters that folder names must not contain.
    return f"{name.replace('/', '.')[:LONGEST]}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
