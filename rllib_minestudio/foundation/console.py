"""The commands' output: phases with their elapsed time, and human-readable numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from rllib_minestudio.foundation.options import printable

UNBOUNDED = 100_000
"""Width, in columns, of output that is not a terminal: tables become as wide as their cells."""


class _PlainConsole(Console):
    """A console to which names and texts from files bring no control characters.

    rich takes most of them for text: an escape sequence in the name of a task would recolour the
    terminal, rename its window, or hide what was printed before.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does, with control characters in texts as escape sequences."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


class _WholeConsole(_PlainConsole):
    """A console that cuts nothing off when its output goes to a program or a file.

    rich assumes that a pipe is 80 columns wide, and shortens names to fit tables into it. To get
    that, set COLUMNS.
    """

    @property
    def size(self) -> ConsoleDimensions:
        known = super().size
        if self.is_terminal or self._width is not None or "COLUMNS" in self._environ:
            return known
        return ConsoleDimensions(UNBOUNDED, known.height)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._width, self._height = new_size


stdout = _WholeConsole(markup=False, emoji=False, highlight=False, soft_wrap=True)
"""For results and progress, as plain lines if standard output is not a terminal.

Markup is off, because names of tasks, filters and files may contain brackets."""

stderr = _PlainConsole(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)
"""For errors."""


SECONDS_BETWEEN_MESSAGES = 5.0
"""The shortest time between two messages of a phase if they cannot overwrite each other."""


@contextmanager
def phase(title: str) -> Iterator[Callable[[str], None]]:
    """Show that something is under way and, when it is done, how long it took.

    Yields:
        A function that shows a message about the phase's progress.
    """
    start = time.monotonic()
    if stdout.is_terminal:
        with stdout.status(Text(title)) as spinner:
            yield lambda message: spinner.update(Text(f"{title}: {message}"))
    else:
        stdout.print(f"{title} ...")
        last = start

        def show(message: str) -> None:
            nonlocal last
            if time.monotonic() - last >= SECONDS_BETWEEN_MESSAGES:
                last = time.monotonic()
                stdout.print(f"  {message}")

        yield show
    stdout.print(f"{title}: done in {time.monotonic() - start:.1f} s")


def clock(seconds: float) -> str:
    """Format a duration as m:ss, or h:mm:ss from one hour on."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def short(value: object) -> str:
    """Format a setting's value: floats with four significant digits, anything else by `str`."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def counted(number: int, noun: str) -> str:
    """Format a number with its noun, such as "1 success" and "2 successes"."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def rounded(value: float, layout: str) -> str:
    """Format a number by a format such as "{:.3f}"; a number that rounds to zero has no sign."""
    text = layout.format(value)
    return text.removeprefix("-") if text.strip("-0.%") == "" else text
