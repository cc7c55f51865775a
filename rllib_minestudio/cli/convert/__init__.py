"""`rllib convert`: translates a MineStudio config module into an experiment file."""

from __future__ import annotations

import argparse
from dataclasses import MISSING, dataclass
from pathlib import Path

from rllib_minestudio.cli.flags import add_flags
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.console import stderr, stdout
from rllib_minestudio.foundation.files import write_whole
from rllib_minestudio.foundation.options import Flag, option

INCOMPLETE = 1
"""Exit status if something could not be translated."""

DESCRIPTION = """\
Translate a config module of MineStudio's online training (online_dict, env_generator,
policy_generator) into an experiment file.

CONFIG is Python and is executed, as MineStudio does: convert only files that you trust. MineStudio
need not be installed; its classes are replaced by ones that only record their arguments.
CONFIG may also be a whole program that ends by calling start_trainer; nothing is started.
What cannot be translated is listed on standard error and at the top of the file; the exit status
is then 1. docs/minecraft.md says what becomes of each key.
"""

EXAMPLES = """\
examples:
  rllib convert minestudio/online/run/config/gate.py --out gate.yaml
  rllib train file gate.yaml
"""


@dataclass(frozen=True, kw_only=True)
class ConversionRequest:
    """Options of `rllib convert`."""

    config: Path = option(MISSING, "A Python file.", Flag("CONFIG", is_positional=True))
    out: Path | None = option(None, "The YAML file to write. Default: print it.", Flag("FILE"))


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib convert`."""
    add_flags(parser, ConversionRequest, convert)


def convert(request: ConversionRequest) -> int:
    """Run `rllib convert` and return the exit status.

    Raises:
        InvalidOptionsError: The output file exists.
        ExperimentFileError: The config module does not exist or raises an error.
    """
    from rllib_minestudio.cli.convert.environment import as_yaml, translate
    from rllib_minestudio.cli.convert.stand_ins import ConfigModule

    if request.out is not None and request.out.exists():
        raise InvalidOptionsError(f"--out {request.out}: the file already exists.")
    translation = translate(ConfigModule(request.config))
    text = as_yaml(translation, request.config)
    if request.out is None:
        stdout.print(text, markup=False, end="")
    else:
        write_whole(request.out, text)
        stdout.print(f"{request.out} was written.", markup=False)
        for sentence in translation.not_needed:
            stdout.print(f"not needed, or done differently: {sentence}", markup=False)
    for sentence in translation.left_out:
        stderr.print(f"not translated: {sentence}", style="yellow", markup=False)
    return INCOMPLETE if translation.left_out else 0
