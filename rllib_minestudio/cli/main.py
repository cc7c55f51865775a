"""The `rllib` command line."""

import argparse
import errno
import importlib.metadata
import sys
import tempfile
import traceback
from collections.abc import Sequence
from types import ModuleType

from rllib_minestudio.cli import (
    benchmark_command,
    checkpoint_command,
    convert,
    doctor_command,
    engine_command,
    evaluate_command,
    model_command,
    play_command,
    record_command,
    train_command,
    warmup_command,
)
from rllib_minestudio.cli.flags import Parser, request_from
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.foundation.console import stderr

BAD_INPUT = 2
"""Exit status for anything the user can put right, as argparse has it."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

LONGEST = 4000
"""Characters of one message: a wrong value may itself be a megabyte."""

DESCRIPTION = """\
Train agents in Minecraft with Ray RLlib.

  rllib train file tuned_examples/cow.yaml    an agent learns to hunt cows
  rllib evaluate CHECKPOINT --record out/     how good it is, with videos
  rllib COMMAND --help                        what a command does, with examples
"""

COMMANDS: dict[str, tuple[str, ModuleType]] = {
    "train": ("train agents", train_command),
    "warmup": ("compile engine and convolutions, once per machine", warmup_command),
    "play": ("watch an agent play a task", play_command),
    "evaluate": ("measure how well a checkpoint plays, and record it", evaluate_command),
    "benchmark": ("play suites of tasks, and compare what came of it", benchmark_command),
    "convert": ("translate a MineStudio config into an experiment file", convert),
    "doctor": ("say what works on this machine, and how to fix the rest", doctor_command),
    "record": ("record demonstrations of a scripted agent", record_command),
    "engine": ("let MineStudio's package play on the embedded engine", engine_command),
    "checkpoint": ("list checkpoints, or say what one was made with", checkpoint_command),
    "model": ("inspect weights, or convert them", model_command),
}
"""Each command's line in the overview and its module, which has DESCRIPTION, EXAMPLES and
add_parser. The modules import what they need when they run, so that `--help` is quick."""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = Parser("rllib", description=DESCRIPTION, formatter_class=keep_lines)
    version = f"rllib-minestudio {importlib.metadata.version('rllib-minestudio')}"
    parser.add_argument("--version", action="version", version=version)
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
        arguments: Words after `rllib`; None takes them from the process. Without any, the help is
            printed: that is no mistake, and the status is 0.
    """
    _take_any_name()
    words = sys.argv[1:] if arguments is None else arguments
    parsed = build_parser().parse_args(words or ["--help"])
    try:
        status: int = parsed.run(request_from(parsed))
        sys.stdout.flush()  # here, where a full disk can still be reported
        return status
    except KeyboardInterrupt:
        stderr.print("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = None  # the reader has gone; Python would complain at exit
        return BAD_INPUT
    except Exception as error:
        for sentence in _sentences(error):
            stderr.print(f"error: {sentence}", style="red", markup=False)
        return BAD_INPUT


def _take_any_name() -> None:
    """Let names of files be printed that are no text in the terminal's encoding."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _sentences(error: Exception) -> list[str]:
    """Say what went wrong: in the error's own words if it is one of ours, or of the system's."""
    if isinstance(error, InvalidOptionsError):
        sentences = error.problems
    elif isinstance(error, MineStudioError):
        sentences = [str(error)]
    elif isinstance(error, OSError) and error.errno is not None:
        sentences = [_of_the_system(error)]
    elif isinstance(error, MemoryError):
        sentences = ["the memory of this machine does not suffice."]
    else:
        sentences = [_bug(error)]
    return [s if len(s) <= LONGEST else f"{s[:LONGEST]} ..." for s in sentences]


def _of_the_system(error: OSError) -> str:
    name = f"{str(error.filename)!r}: " if error.filename is not None else ""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    way_out = " Free space there, or choose another folder with --out." if full else ""
    return f"{name}{error.strerror}.{way_out}"


def _bug(error: Exception) -> str:
    """Write down an error that nobody expected, and say where."""
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="rllib-error-", suffix=".log", delete=False, errors="backslashreplace"
        ) as file:
            file.write(f"rllib {' '.join(map(ascii, sys.argv[1:]))}\n\n{text}")
    except OSError:
        stderr.print(text, markup=False)  # better in the way than lost
        return f"this is a bug of ours; please report it with what is above ({what})."
    return f"this is a bug of ours; please report it with {file.name} ({what})."


if __name__ == "__main__":
    sys.exit(main())
