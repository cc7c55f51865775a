"""Presets, overrides and the messages for wrong options."""

import pytest
import torch

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.vpt import PRESETS, VPTConfig, VPTNetwork


def test_presets_have_the_published_sizes():
    sizes = {
        name: (config.hidsize, config.impala_width, config.attention_heads, config.memory_length)
        for name, config in PRESETS.items()
    }
    assert sizes["1x"] == (1024, 4, 8, 128)
    assert sizes["2x"] == (2048, 8, 16, 128)
    assert sizes["3x"] == (3072, 12, 24, 128)


@pytest.mark.parametrize(("preset", "millions"), [("1x", 71.0), ("2x", 248.5)])
def test_published_parameter_counts(preset, millions):
    with torch.device("meta"):
        network = VPTNetwork(PRESETS[preset])
    parameters = sum(parameter.numel() for parameter in network.parameters())
    assert parameters / 1e6 == pytest.approx(millions, abs=0.1)


def test_nano_is_small():
    network = VPTNetwork(PRESETS["nano"])
    assert sum(parameter.numel() for parameter in network.parameters()) < 2e6


def test_overrides_replace_the_presets_fields():
    config = VPTConfig.from_options({"preset": "nano", "hidsize": 64, "img_shape": [32, 48, 3]})
    assert (config.hidsize, config.img_shape) == (64, (32, 48, 3))
    assert config.action_head == "factored"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "nanno"}, "'nanno', which does not exist.*Did you mean 'nano'"),
        ({"hidsizes": 1}, "'hidsizes' does not exist.*Did you mean 'hidsize'"),
        ({"hidsize": "big"}, "hidsize must be an integer; got 'big'"),
        ({"hidsize": 100}, "multiple of attention_heads, but 100 is not one of 8"),
        ({"img_shape": [130, 128, 3]}, "multiples of 8.*are 130 and 128"),
        ({"img_shape": [128, 128]}, r"must be \(height, width, 3\); got \(128, 128\)"),
        ({"img_shape": 128}, "img_shape must be a list of integers; got 128"),
        ({"timesteps": 256}, "must exceed timesteps.*attention_memory_size=256.*timesteps=256"),
        ({"impala_width": 0.01}, r"at least 1, but gives \(0, 0, 0\)"),
        ({"temperature": 0}, "temperature must be positive; got 0"),
        ({"action_head": "factorred"}, "Did you mean 'factored'"),
        ({"attention_heads": 0}, "attention_heads must be at least 1; got 0"),
        ({"impala_chans": []}, r"impala_chans must be a list of integers; got \(\)"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InvalidOptionsError, match=message):
        VPTConfig.from_options(options)


def test_all_problems_are_reported_at_once():
    with pytest.raises(InvalidOptionsError) as caught:
        VPTConfig.from_options({"temperature": -1, "hidsize": 100, "action_head": "x"})
    assert len(caught.value.problems) == 3
