"""Numbers on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable

MOST_EPISODES, LARGEST_SEED = 1_000_000, 2**31 - 1


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number from `least` to `most`, for argparse's `type`."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"must be a whole number from {least} to {most}, got {text[:40]!r}"
            )
        return number

    return read
