"""What the folders of trials are called."""

import re
from types import SimpleNamespace

from rllib_minestudio.experiments.resume_options import LONGEST, trial_folder, trial_name

NAME = "MineStudioPPO_4b2a1_00000"
DATE = r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d"


class Trial(SimpleNamespace):
    trainable_name = "MineStudioPPO"
    trial_id = "4b2a1_00000"

    def __str__(self):
        """As Tune's own, for an environment that is a class."""
        return "MineStudioPPO_('__ref_ph', 'c2960e0c')_4b2a1_00000"


def test_a_small_rate_is_told_in_full():
    trial = Trial(evaluated_params={"lr": 1e-5, "env_config/seed": 3})
    expected = rf"{NAME}_lr=1e-05,env_config\.seed=3_{DATE}"
    assert re.fullmatch(expected, trial_folder(trial))


def test_without_a_search_it_is_the_trials_own_and_never_too_long():
    trial = Trial(evaluated_params={})
    assert trial_name(trial) == NAME
    assert re.fullmatch(rf"{NAME}_{DATE}", trial_folder(trial))
    long = Trial(evaluated_params={"x" * 300: 1})
    assert len(trial_folder(long)) == LONGEST + len("_2026-11-21_12-00-09")
