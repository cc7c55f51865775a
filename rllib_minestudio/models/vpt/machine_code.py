"""Kernels of the network as machine code: compiled once for a machine, then kept there."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from rllib_minestudio import compilation_cache
from rllib_minestudio.models.vpt import team

_logger = logging.getLogger(__name__)

_MARKER_NAME = "compiled"
_REPORT_SECONDS = 30.0


class MachineCode:
    """Functions that `team.run` runs, which are compiled together."""

    def __init__(
        self, what: str, modules: Sequence[ModuleType], functions: Sequence[Callable[[Any], None]]
    ) -> None:
        """Compiles nothing yet.

        Args:
            what: Their name in messages.
            modules: Their sources, besides the module that the functions are in.
            functions: Each takes the address of words.
        """
        own = functions[0].__code__.co_filename
        sources = [own, __file__, compilation_cache.__file__, team.__file__]
        sources += [str(module.__file__) for module in modules]
        name = compilation_cache.fingerprint({Path(source) for source in sources})
        self.folder = compilation_cache.base_folder() / f"network-{name}"
        self._what = what
        self._functions = functions

    @cached_property
    def addresses(self) -> dict[Callable[[Any], None], int]:
        """Of each function's machine code, which is loaded or made."""
        return {
            function: compilation_cache.address_of(function, team.SIGNATURE, self.folder)
            for function in self._functions
        }

    def is_compiled(self) -> bool:
        """Whether this machine already holds the machine code of this version."""
        return (self.folder / _MARKER_NAME).exists()

    def compile_once(self, progress: Callable[[str], None] | None = None) -> None:
        """Makes sure that the functions are compiled; returns at once when they are.

        Args:
            progress: Receives a line of text before and after compiling, and while waiting for
                another process that does; by default the lines go to the log.

        Raises:
            OSError: If the machine code cannot be kept.
        """
        if self.is_compiled():
            return
        tell = progress or _logger.warning

        def waiting(seconds: float) -> None:
            if seconds % _REPORT_SECONDS < compilation_cache.POLL_SECONDS:
                tell(f"Another process is compiling the {self._what}; waiting for it ...")

        with compilation_cache.only_process(self.folder, waiting):
            if not self.is_compiled():
                tell(f"Compiling the {self._what}, once for this machine (10 to 20 s) ...")
                start = time.monotonic()
                _ = self.addresses
                (self.folder / _MARKER_NAME).touch()
                tell(f"The {self._what} are compiled ({time.monotonic() - start:.0f} s).")
