"""Which pages of docs/ are generated, and from what."""

from __future__ import annotations

from collections.abc import Callable

from rllib_minestudio.algorithms.options import listing
from rllib_minestudio.reference import (
    benchmark_tasks,
    blocks,
    callbacks,
    commands,
    environment,
    experiments,
)

PAGES: dict[str, Callable[[], str]] = {
    "options.md": listing.page,
    "env_options.md": environment.page,
    "callback_options.md": callbacks.page,
    "experiment_options.md": experiments.page,
    "commands.md": commands.page,
    "blocks.md": blocks.page,
    "benchmark_tasks.md": benchmark_tasks.page,
}
"""File name -> what returns its text."""
