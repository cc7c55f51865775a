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


def add_agent_timeout(parser: argparse.ArgumentParser) -> None:
    """Declare how long an agent of somebody's own may take over an action."""
    parser.add_argument(
        "--agent-timeout",
        metavar="S",
        type=_seconds,
        default=60.0,
        help="seconds that MODULE:FUNCTION's agent may take over an action (default: 60)",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text[:40]!r}")
    return seconds
