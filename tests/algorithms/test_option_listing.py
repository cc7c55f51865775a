"""Help and signatures are what the declarations of the options say."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields

import pytest

from rllib_minestudio.algorithms import MineStudioBCConfig, MineStudioPPOConfig
from rllib_minestudio.foundation.options import sentence_of


@pytest.mark.parametrize("make", [MineStudioPPOConfig, MineStudioBCConfig])
def test_training_shows_its_options(make):
    parameters = inspect.signature(make.training).parameters
    config = make()
    for option in fields(make.OPTIONS):
        assert parameters[option.name].default == getattr(config, option.name), option.name
        assert f"{option.name}: {sentence_of(option)}" in make.training.__doc__
        assert (
            sentence_of(option)[0] in "`"
            or sentence_of(option)[0].isupper()
            or "log" in sentence_of(option)
        )
        assert sentence_of(option).endswith((".", ".)"))


def test_help_lists_the_options_without_loading_ray():
    code = (
        "import sys; from rllib_minestudio.algorithms.options import help_text; "
        "print(help_text()); sys.exit(bool({'ray', 'torch', 'numpy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "kl_coeff=0.2" in done.stdout and "env_pool.step_timeout_s=60.0" in done.stdout
