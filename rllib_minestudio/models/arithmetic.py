"""How a GPU multiplies float32 numbers: exactly, or rounded to TensorFloat-32 before.

torch computes convolutions in TensorFloat-32 (ten bits of mantissa, relative errors of 5e-4) unless
told otherwise, whatever the type of the numbers says, and products of matrices exactly. Here the
option `precision` decides both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

FLOAT32, TF32, BFLOAT16 = "float32", "tf32", "bfloat16"
"""Values of `precision`."""

DTYPES = {FLOAT32: torch.float32, TF32: torch.float32, BFLOAT16: torch.bfloat16}
"""Of a network's images and features, by `precision`."""


def set_arithmetic(precision: str) -> None:
    """Let this process multiply float32 numbers on GPUs as a precision says, from now on.

    What is float32 beside bfloat16 is exact.
    """
    torch.backends.cudnn.allow_tf32 = precision == TF32
    torch.set_float32_matmul_precision("high" if precision == TF32 else "highest")


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
