"""The `rllib` command line."""

import argparse
import errno
import importlib.metadata
import sys
import tempfile
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from rllib_minestudio.cli import (
    benchmark_command,
    checkpoint_command,
    convert,
    data_command,
    doctor_command,
    engine_command,
    evaluate_command,
    model_command,
    play_command,
    record_command,
    train_command,
    warmup_command,
    watch_command,
)
from rllib_minestudio.cli.flags import Parser, request_from
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.foundation.console import notices, stderr

# -------------- `rllib --completion`: prints what lets a shell complete commands, options and files

SHELLS = ("bash", "zsh")

_FILES = ("PATH", "DIR", "FILE", "FOLDER", "CHECKPOINT", "CONFIG", "OLD", "SOURCE", "WEIGHTS")
"""Placeholders of values that are, or may be, paths."""
_TASKS = ("FILE", "TASK")
"""Placeholders of values that may also be the name of an example."""

_BASH = """\
_rllib_tasks() {{
  compgen -W "{names}" -- "$1"
  compgen -f -- "$1"
}}
"""
_ZSH = "_alternative 'examples:example:({names})' 'files:file:_files'"


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag to the parser of the whole command line."""
    parser.add_argument(
        "--completion",
        choices=SHELLS,
        action=_Completion,
        help="print a script that completes commands, options, examples and files when Tab is "
        "pressed: source <(rllib --completion bash), or, for zsh, a file _rllib in a folder of "
        "your $fpath",
    )


class _Completion(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        import shtab

        from rllib_minestudio.experiments.experiment_file import packaged_names

        names = " ".join(packaged_names())
        _mark(parser, shtab.FILE, {"bash": "_rllib_tasks", "zsh": _ZSH.format(names=names)})
        preamble: Any = {"bash": _BASH.format(names=names)}
        print(shtab.complete(parser, str(values), preamble=preamble))
        parser.exit()


def _mark(parser: argparse.ArgumentParser, files: object, tasks: object) -> None:
    """Note at the arguments of a parser and its commands what they are completed with."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _mark(command, files, tasks)
        elif str(action.metavar).startswith("{"):  # which `flags` writes around a value's choices
            action.choices = str(action.metavar).strip("{}").split(",")
        elif action.metavar in _TASKS:
            action.complete = tasks  # type: ignore[attr-defined]
        elif set(str(action.metavar).split("|")) & set(_FILES):
            action.complete = files  # type: ignore[attr-defined]


# ------------------------------------------------------------------------- the `rllib` command line

BAD_INPUT = 2
"""Exit status for errors that the user can fix, as in argparse."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""

LONGEST = 4000
"""Limit on the characters of a message, which may quote a value of a megabyte."""

DESCRIPTION = """\
Train agents in Minecraft with Ray RLlib.

  rllib train file tuned_examples/cow.yaml    an agent learns to hunt cows
  rllib evaluate CHECKPOINT --record out/     how good it is, with videos
  rllib COMMAND --help                        what a command does, with examples
"""

COMMANDS: dict[str, tuple[str, ModuleType]] = {
    "train": ("train agents", train_command),
    "warmup": ("compile engine and convolutions, once per machine", warmup_command),
    "play": ("let an agent play a task, and record it", play_command),
    "watch": ("play a task yourself, or watch an agent, in the browser", watch_command),
    "evaluate": ("measure how well a checkpoint plays, and record it", evaluate_command),
    "benchmark": ("play suites of tasks, and compare the results", benchmark_command),
    "convert": ("translate a MineStudio config into an experiment file", convert),
    "doctor": ("report what works on this machine, and how to fix the rest", doctor_command),
    "record": ("record demonstrations of a scripted agent", record_command),
    "data": ("look at recordings, and find what is wrong with them", data_command),
    "engine": ("let MineStudio's package play on the embedded engine", engine_command),
    "checkpoint": ("list checkpoints, or show what one was made with", checkpoint_command),
    "model": ("inspect weights, or convert them", model_command),
}
"""Command -> (its line in the overview, its module with DESCRIPTION, EXAMPLES and add_parser). The
modules import what they need only when they run, so that `--help` is fast."""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = Parser("rllib", description=DESCRIPTION, formatter_class=keep_lines)
    version = f"rllib-minestudio {importlib.metadata.version('rllib-minestudio')}"
    parser.add_argument("--version", action="version", version=version)
    add_flag(parser)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (line, module) in COMMANDS.items():
        module.add_parser(
            commands.add_parser(
                name,
                help=line,
                description=module.DESCRIPTION,
                epilog=module.EXAMPLES,
                formatter_class=keep_lines,
            )
        )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: Words after `rllib`; None takes them from the process. Without any words, the
            help is printed, and the status is 0.
    """
    _take_any_name()
    words = sys.argv[1:] if arguments is None else arguments
    parsed = build_parser().parse_args(words or ["--help"])
    try:
        request = request_from(parsed)
        notices.quiet = getattr(request, "quiet", False)
        status: int = parsed.run(request)
        sys.stdout.flush()  # while a full disk can still be reported
        return status
    except KeyboardInterrupt:
        stderr.print("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = None  # the reader is gone, and Python would report that at exit
        return BAD_INPUT
    except Exception as error:
        for sentence in _sentences(error):
            stderr.print(f"error: {sentence}", style="red", markup=False)
        return BAD_INPUT


def _take_any_name() -> None:
    """Allow printing file names that the terminal's encoding cannot represent."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _sentences(error: Exception) -> list[str]:
    """Return the messages of an error; unexpected ones are reported as bugs."""
    if isinstance(error, InvalidOptionsError):
        sentences = error.problems
    elif isinstance(error, MineStudioError):
        sentences = [str(error)]
    elif isinstance(error, OSError) and error.errno is not None:
        sentences = [_of_the_system(error)]
    elif isinstance(error, MemoryError):
        sentences = ["this machine does not have enough memory."]
    else:
        sentences = [_bug(error)]
    return [s if len(s) <= LONGEST else f"{s[:LONGEST]} ..." for s in sentences]


def _of_the_system(error: OSError) -> str:
    name = f"{str(error.filename)!r}: " if error.filename is not None else ""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    way_out = " Free space there, or choose another folder with --out." if full else ""
    return f"{name}{error.strerror}.{way_out}"


def _bug(error: Exception) -> str:
    """Write an unexpected error to a file, and return the message that names it."""
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="rllib-error-", suffix=".log", delete=False, errors="backslashreplace"
        ) as file:
            file.write(f"rllib {' '.join(map(ascii, sys.argv[1:]))}\n\n{text}")
    except OSError:
        stderr.print(text, markup=False)  # it would be lost otherwise
        return f"this is a bug of ours; please report it with the text above ({what})."
    return f"this is a bug of ours; please report it with {file.name} ({what})."


if __name__ == "__main__":
    sys.exit(main())
