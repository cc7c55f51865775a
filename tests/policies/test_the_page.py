"""The policy on docs/policies.md is whole: it keeps the contract as it stands there."""

import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch

from rllib_minestudio.models.policy_checks import check_policy

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"


def test_the_example_on_the_page_keeps_the_contract():
    """The first block of Python on it is run as it is."""
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names = {"__name__": "page"}
    exec(block.group(1), names)
    torch.manual_seed(0)
    check_policy(
        lambda: names["LSTMPolicy"](
            observation_space=gym.spaces.Dict(
                image=gym.spaces.Box(0, 255, (64, 64, 3), np.uint8),
                unread=gym.spaces.Discrete(3),
            ),
            action_space=gym.spaces.Dict(
                buttons=gym.spaces.MultiDiscrete([8641]), camera=gym.spaces.MultiDiscrete([121])
            ),
            model_config={"size": 32},
        )
    )
