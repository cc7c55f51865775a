"""`rllib --completion`: prints what lets a shell complete commands, options and files."""

import argparse
from collections.abc import Sequence
from typing import Any

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
