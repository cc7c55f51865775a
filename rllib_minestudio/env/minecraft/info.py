"""MineStudio's info as plain Python: no arrays, no default dictionaries, nothing unpicklable."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Return a copy in which every array of no dimensions is a number and every mapping a dict."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.item() if value.ndim == 0 else value
    return value
