"""MineStudio's page on online training, as a program: its words, put one after the other.

`online_quick_start.txt` is the page. It has lost a value, uses OmegaConf without importing it, and
calls one object by two names; a program needs these three put right.
"""

from pathlib import Path

import torch

from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from tests.models.vpt.checkpoints import openai

PAGE = Path(__file__).with_name("online_quick_start.txt")
_EXAMPLE, _CONFIG, _RUN = "As an example:", "for online training:", "all the above content, run:"

WITHOUT_GPUS = {
    '"num_gpus_per_worker": 1.0': '"num_gpus_per_worker": 0',
    '"batches_per_iteration": 200': '"batches_per_iteration": 2',
    '"fragment_length": 256': '"fragment_length": 64',
}
"""What makes a few seconds on processors of it."""


def program(changes=()):
    """The page's program.

    Args:
        changes: Words of the page -> what stands in their place.
    """
    policy, rest = PAGE.read_text().split(_EXAMPLE)[1:]
    env, rest = rest.split("Config which provide")
    options, rest = rest.split(_CONFIG)[1].split("After preparing")
    start = rest.split(_RUN)[1].split("to start online training")[0]
    policy = policy.split("Environment Generator")[0]
    text = "\n".join(
        [
            "from omegaconf import OmegaConf",
            policy,
            env,
            options,
            "online_cfg = online_config",
            start,
        ]
    )
    changes = {'"anneal_lr_linearly": ': '"anneal_lr_linearly": False,', **dict(changes)}
    for words, replacement in changes.items():
        assert words in text, words
        text = text.replace(words, replacement)
    return text


def small_weights(folder):
    """The page's two files, `pretrained/...`, of a small random network."""
    torch.manual_seed(0)
    network = VPTNetwork(
        VPTConfig.from_options(
            {
                **{"preset": "nano", "img_shape": [128, 128, 3], "action_head": "joint"},
                **{"hidsize": 16, "attention_heads": 2, "n_recurrence_layers": 1},
                **{"attention_memory_size": 24, "timesteps": 16},
            }
        )
    )
    model, weights = openai(network, folder / "pretrained")
    model.rename(model.with_name("foundation-model-2x.model"))
    weights.rename(weights.with_name("bc-from-early-game-2x.weights"))
