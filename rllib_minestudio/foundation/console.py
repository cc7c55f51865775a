"""The commands' output: consoles, phases with their elapsed time, tables, readable numbers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
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
"""For results and warnings, as plain lines if standard output is not a terminal.

Markup is off, because names of tasks, filters and files may contain brackets."""

notices = _WholeConsole(markup=False, emoji=False, highlight=False, soft_wrap=True)
"""For what is under way, on standard output, too; `--quiet` silences it."""

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
    if notices.is_terminal and not notices.quiet:
        with notices.status(Text(title)) as spinner:
            yield lambda message: spinner.update(Text(f"{title}: {message}"))
    else:
        notices.print(f"{title} ...")
        last = start

        def show(message: str) -> None:
            nonlocal last
            if time.monotonic() - last >= SECONDS_BETWEEN_MESSAGES:
                last = time.monotonic()
                notices.print(f"  {message}")

        yield show
    notices.print(f"{title}: done in {time.monotonic() - start:.1f} s")


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


def episodes_so_far(done: int, total: int, successes: int, steps: int) -> str:
    """Format how much is played, such as "7 of 40 episodes, 1 success, 912 steps"."""
    told = f"{done:,} of {counted(total, 'episode')}, {counted(successes, 'success')}"
    return f"{told}, {counted(steps, 'step')}"


def print_next(commands: Mapping[str, str]) -> None:
    """Print commands that may follow, each with what it is for; `--quiet` leaves them out.

    Where a line would be too long, what a command is for stands above it.
    """
    width = max(map(len, commands))
    lines = [f"  {command:<{width}}  # {purpose}" for command, purpose in commands.items()]
    if max(map(len, lines)) > notices.width:
        pairs = [(f"  # {purpose}", f"  {command}") for command, purpose in commands.items()]
        lines = [line for pair in pairs for line in pair]
    notices.print("\n".join(["", "next:", *lines]))


def quoted(path: Path) -> str:
    """Return a path as it can be typed in a shell, relative if it is below the current folder."""
    whole, here = path.absolute(), Path.cwd()
    return shlex.quote(str(whole.relative_to(here) if whole.is_relative_to(here) else whole))


LEAST_TEXT = 24
"""Width, in columns, from which a text is continued on the next line rather than below its key."""
_GAP = "  "


@dataclass(frozen=True, kw_only=True)
class Aligned:
    """Rows in aligned columns, without a box and without anything cut off.

    If a row does not fit the width, its last text is continued on the next line; if there is no
    room for that, everything stands below the key, with its label. Where the output goes to a
    program or a file, each row is a line.

    Attributes:
        rows: For each the key, then `numbers`, then `texts`; an empty one is a blank line.
        key: Header of the first column.
        numbers: Headers of the columns that are aligned on the right.
        texts: Headers of the columns after them.
        title: A line above.
        notes: Lines below.
    """

    rows: Sequence[Sequence[str | Text]]
    key: str
    numbers: Sequence[str] = ()
    texts: Sequence[str] = ()
    title: str = ""
    notes: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines, as rich asks for them."""
        if self.title:
            yield Text(self.title, "bold")
        header = (self.key, *self.numbers, *self.texts)
        rows = [[cell if isinstance(cell, Text) else Text(cell) for cell in r] for r in self.rows]
        widths = [cell_len(name) for name in header]
        for row in rows:
            widths[: len(row)] = [
                max(width, cell.cell_len) for width, cell in zip(widths, row, strict=False)
            ]
        before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        room = options.max_width - before
        if room < widths[-1] and not (self.texts and room >= LEAST_TEXT):
            for row in rows:
                yield from self._below_its_key(header, row, console, options.max_width)
        else:
            yield self._line([Text(name, "bold") for name in header], widths)
            for row in rows:
                *cells, last = row or [Text()]
                first, *further = last.wrap(console, max(room, 1)) or [Text()]
                yield self._line([*cells, first], widths)
                yield from (Text(" " * before).append_text(line) for line in further)
        if self.notes:
            yield Text(self.notes)

    def _line(self, cells: Sequence[Text], widths: Sequence[int]) -> Text:
        line = Text()
        for place, (cell, width) in enumerate(zip(cells, widths, strict=False)):
            padding = " " * (width - cell.cell_len)
            is_number = 0 < place <= len(self.numbers)
            line.append(_GAP if place else "")
            line.append_text(Text(padding).append_text(cell) if is_number else cell)
            line.append("" if is_number else padding)
        line.rstrip()
        return line

    def _below_its_key(
        self, header: Sequence[str], row: Sequence[Text], console: Console, width: int
    ) -> Iterator[Text]:
        yield row[0] if row else Text()
        told = [
            Text.assemble((f"{name} ", "dim"), cell)
            for name, cell in zip(header[1:], row[1:], strict=False)
            if cell
        ]
        for line in Text(_GAP).join(told).wrap(console, max(width - len(_GAP), 1)):
            yield Text(_GAP).append_text(line)
