"""How a GPU multiplies float32 numbers: exactly, or rounded to TensorFloat-32 before.

torch computes convolutions in TensorFloat-32 (ten bits of mantissa, relative errors of 5e-4) unless
told otherwise, whatever the type of the numbers says, and products of matrices exactly. Here the
option `precision` decides both.
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
"""Of a network's images and features, by `precision`."""


def set_arithmetic(precision: str) -> None:
    """Let this process multiply float32 numbers on GPUs as a precision says, from now on.

    What is float32 beside bfloat16 is exact.
    """
    torch.backends.cudnn.allow_tf32 = precision == TF32
    torch.set_float32_matmul_precision("high" if precision == TF32 else "highest")


@cache  # once per process
def advise(precision: str, device_type: str) -> None:
    """Tell what exact products cost, where they are expensive: on a GPU."""
    if device_type == "cuda" and precision == FLOAT32:
        _logger.warning(
            "model.precision is float32, whose exact products cost a GPU two to ten times as much "
            "as tf32, in which MineStudio computes (VPT 2x on an H200: 90 instead of 26 ms an "
            "update), or bfloat16 (20 ms)."
        )


def arithmetic(precision: str, device: torch.device) -> AbstractContextManager[None]:
    """The same for a block, if its device is a GPU; what the process had comes back."""
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
