"""The reference pages, and what each consists of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.reference import (
    algorithms,
    benchmark_tasks,
    blocks,
    callbacks,
    commands,
    environment,
    experiments,
    rllib_settings,
)

_OPTIONS = """\
# Options

Every key of an experiment file, with its default. In Python, `config` stands for the arguments of
the config's `training()`, and `env_config` for those of `MineStudioEnv`.

"""


def options() -> str:
    """Return the page of all options."""
    parts = (experiments, algorithms, environment, callbacks)
    return _OPTIONS + "\n".join(part.section() for part in parts)


PAGES: dict[str, Callable[[], str]] = {
    "options.md": options,
    "rllib_settings.md": rllib_settings.page,
    "commands.md": commands.page,
    "benchmark_tasks.md": benchmark_tasks.page,
    "blocks.md": blocks.page,
}
"""File name -> function that returns its text. Links in it are relative to docs/."""


def write(folder: Path) -> None:
    """Write every page into a folder that exists; one that has not changed is left as it is."""
    for name, page in PAGES.items():
        file, text = folder / name, page()
        if not file.is_file() or file.read_text() != text:
            file.write_text(text)
