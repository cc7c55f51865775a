"""`rllib convert`: a MineStudio config module as an experiment file of this package."""

from __future__ import annotations

import argparse
from pathlib import Path

from rllib_minestudio.console import stderr, stdout
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.whole_file import write_whole

INCOMPLETE = 1
"""Exit status when something could not be translated."""

DESCRIPTION = """\
Translate a config module of MineStudio's online training (online_dict, env_generator,
policy_generator) into an experiment file.

CONFIG is Python and is executed, as MineStudio does: convert only files that you trust. MineStudio
need not be installed; its classes are replaced by ones that only note their arguments.
CONFIG may also be a whole program that ends by calling start_trainer; nothing is started.
What cannot be translated is listed on standard error and at the top of the file; the exit status
is then 1. docs/from_minestudio.md says what became of each key.
"""

EXAMPLES = """\
examples:
  rllib convert minestudio/online/run/config/gate.py --out gate.yaml
  rllib train file gate.yaml
"""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rllib convert`."""
    parser.add_argument("config", metavar="CONFIG", type=Path, help="a Python file")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="the YAML file to write (default: print it)"
    )
    parser.set_defaults(run=convert)


def convert(arguments: argparse.Namespace) -> int:
    """Run `rllib convert` and return the exit status.

    Raises:
        InvalidOptionsError: If the output file exists.
        ExperimentFileError: If the config module does not exist or raises.
    """
    from rllib_minestudio.cli.convert.stand_ins import ConfigModule
    from rllib_minestudio.cli.convert.writer import as_yaml, translate

    if arguments.out is not None and arguments.out.exists():
        raise InvalidOptionsError(f"--out {arguments.out}: the file exists already.")
    translation = translate(ConfigModule(arguments.config))
    text = as_yaml(translation, arguments.config)
    if arguments.out is None:
        stdout.print(text, markup=False, end="")
    else:
        write_whole(arguments.out, text)
        stdout.print(f"{arguments.out} is written.", markup=False)
        for sentence in translation.not_needed:
            stdout.print(f"not needed, or done otherwise: {sentence}", markup=False)
    for sentence in translation.left_out:
        stderr.print(f"not translated: {sentence}", style="yellow", markup=False)
    return INCOMPLETE if translation.left_out else 0
