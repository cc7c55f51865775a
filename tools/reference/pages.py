"""Which pages of docs/ are generated, and from what."""

from __future__ import annotations

from collections.abc import Callable

from tools.reference import (
    benchmark_tasks,
    blocks,
    callbacks,
    commands,
    environment,
    experiments,
    options,
)

PAGES: dict[str, Callable[[], str]] = {
    "options.md": options.page,
    "env_options.md": environment.page,
    "callback_options.md": callbacks.page,
    "experiment_options.md": experiments.page,
    "commands.md": commands.page,
    "blocks.md": blocks.page,
    "benchmark_tasks.md": benchmark_tasks.page,
}
"""File name -> function that returns its text."""
