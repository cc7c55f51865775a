"""The `rllib` command line."""

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from rllib_minestudio.cli import (
    checkpoint,
    convert,
    doctor,
    engine,
    evaluate,
    model,
    play,
    record,
    train_command,
    warmup,
)
from rllib_minestudio.cli.console import stderr
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError

BAD_INPUT = 2
"""Exit status for anything the user can put right, as argparse has it."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

DESCRIPTION = """\
Train agents in Minecraft with Ray RLlib.

  rllib train file tuned_examples/cow.yaml    an agent learns to hunt cows
  rllib evaluate CHECKPOINT --record out/     how good it is, with videos
  rllib COMMAND --help                        what a command does, with examples
"""

COMMANDS: dict[str, tuple[str, ModuleType]] = {
    "train": ("train agents", train_command),
    "warmup": ("compile engine and convolutions, once per machine", warmup),
    "play": ("watch an agent play a task", play),
    "evaluate": ("measure what a checkpoint is worth, and record it", evaluate),
    "convert": ("translate a MineStudio config into an experiment file", convert),
    "doctor": ("say what works on this machine, and how to fix the rest", doctor),
    "record": ("record demonstrations of a scripted agent", record),
    "engine": ("let MineStudio's package play on the embedded engine", engine),
    "checkpoint": ("list checkpoints, or say what one was made with", checkpoint),
    "model": ("look into weights, or convert them", model),
}
"""Each command's line in the overview and its module, which has DESCRIPTION, EXAMPLES and
add_parser. The modules import what they need when they run, so that `--help` is quick."""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("rllib", description=DESCRIPTION, formatter_class=keep_lines)
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
        arguments: Words after `rllib`; None takes them from the process.
    """
    parsed = build_parser().parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
        return status
    except InvalidOptionsError as error:
        for problem in error.problems:
            stderr.print(f"error: {problem}", style="red", markup=False)
        return BAD_INPUT
    except MineStudioError as error:
        stderr.print(f"error: {error}", style="red", markup=False)
        return BAD_INPUT
    except KeyboardInterrupt:
        stderr.print("interrupted")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
