"""Parts that learn, their rates, and the averaged weights."""

import pytest
import torch

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.fine_tuning import (
    HEADS_ONLY,
    WeightAverage,
    freeze,
    matching,
    parameter_groups,
)
from tests.models.value_statistics import take_in


def _step(network, images, groups):
    optimizer = torch.optim.SGD(groups, lr=1.0)
    for group in optimizer.param_groups:
        group["lr"] = 0.1 * group["lr_factor"]
    first = torch.zeros(images.shape[:2], dtype=torch.bool)
    out = network(images, first, network.initial_state(2))
    (out.value_bt.sum() + out.logits["buttons"][..., 3].sum()).backward()
    optimizer.step()


def test_frozen_parts_do_not_move(network, images):
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    frozen = freeze(network, HEADS_ONLY)
    assert frozen == matching(network, "net.*")
    _step(network, images, parameter_groups(network, {}))
    after = network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in frozen)
    assert not torch.equal(before["value_head.linear.weight"], after["value_head.linear.weight"])


def test_rates_by_pattern(network):
    freeze(network, ["*.b_nd"])
    factors = {"net.img_process.*": 0.1, "net.*": 0.5}
    groups = parameter_groups(network, factors, weight_decay=0.04)
    of = {name: group for group in groups for name, _ in group["params"]}
    assert of["net.img_process.linear.layer.weight"]["lr_factor"] == 0.1
    assert of["net.final_ln.bias"]["lr_factor"] == 0.5
    assert of["value_head.linear.bias"]["lr_factor"] == 1.0
    assert all(group["weight_decay"] == 0.04 for group in groups)
    names = {name for name, _ in network.named_parameters()}
    assert set(of) == {name for name in names if not name.endswith("b_nd")}


def test_without_factors_the_order_is_the_networks(network):
    (group,) = parameter_groups(network, {})
    assert [(name, id(p)) for name, p in group["params"]] == [
        (name, id(p)) for name, p in network.named_parameters()
    ]


def test_mistakes_are_explained(network):
    with pytest.raises(InvalidOptionsError, match=r"Did you mean 'net\.final_ln\.weight'"):
        freeze(network, ["net.finalln.weight"])
    with pytest.raises(InvalidOptionsError, match="must be a list"):
        freeze(network, "net.*")
    with pytest.raises(
        InvalidOptionsError, match=r"freeze must be a list of shell patterns.*\[3\]"
    ):
        freeze(network, [3])
    with pytest.raises(InvalidOptionsError, match="leaves nothing"):
        freeze(network, ["*"])
    with pytest.raises(InvalidOptionsError, match="positive"):
        parameter_groups(network, {"net.*": 0})
    with pytest.raises(InvalidOptionsError, match="below 1"):
        WeightAverage(network, 1.0)


def test_the_average_follows_the_weights(network):
    average = WeightAverage(network, decay=0.75)
    bias = network.net.final_ln.bias
    expected = torch.zeros_like(bias)
    for update, decay in enumerate([1 / 2, 2 / 3, 0.75, 0.75], start=1):
        with torch.no_grad():
            bias.fill_(float(update))
        take_in(network.value_head, torch.tensor([float(update)]))
        average.update(network)
        expected = decay * expected + (1 - decay) * update
    torch.testing.assert_close(average.weights()["net.final_ln.bias"], expected)
    statistics = "value_head.normalizer.running_mean"
    assert torch.equal(average.weights()[statistics], network.state_dict()[statistics])
    resumed = WeightAverage(network, decay=0.75)
    resumed.load_state_dict(average.state_dict())
    for each in (average, resumed):
        each.update(network)
    torch.testing.assert_close(resumed.weights(), average.weights())
