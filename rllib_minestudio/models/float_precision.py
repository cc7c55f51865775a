"""How a GPU multiplies float32 numbers: exactly, or rounded to TensorFloat-32 first.

By default, torch computes float32 convolutions in TensorFloat-32 (ten bits of mantissa, relative
errors of 5e-4), but matrix products exactly. Here the option `precision` decides both.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache

import torch

FLOAT32, TF32, BFLOAT16 = "float32", "tf32", "bfloat16"
"""Values of `precision`."""

_logger = logging.getLogger(__name__)

DTYPES = {FLOAT32: torch.float32, TF32: torch.float32, BFLOAT16: torch.bfloat16}
"""The dtype of a network's images and features for each `precision`."""


def set_arithmetic(precision: str) -> None:
    """Set how this process multiplies float32 numbers on GPUs from now on.

    With `bfloat16`, whatever remains float32 is exact.
    """
    torch.backends.cudnn.allow_tf32 = precision == TF32
    torch.set_float32_matmul_precision("high" if precision == TF32 else "highest")


@cache  # once per process
def advise(precision: str, device_type: str) -> None:
    """Warn of the cost of exact products if the device is a GPU."""
    if device_type == "cuda" and precision == FLOAT32:
        _logger.warning(
            "model.precision is float32, whose exact products cost a GPU two to ten times as much "
            "as tf32, in which MineStudio computes (VPT 2x on an H200: 90 instead of 26 ms an "
            "update), or bfloat16 (20 ms)."
        )


def arithmetic(precision: str, device: torch.device) -> AbstractContextManager[None]:
    """Apply `set_arithmetic` within a `with` block if the device is a GPU, then restore."""
    return _for_a_block(precision) if device.type == "cuda" else nullcontext()


@contextmanager
def _for_a_block(precision: str) -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    set_arithmetic(precision)
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before[0]
        torch.set_float32_matmul_precision(before[1])
