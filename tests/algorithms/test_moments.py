"""Moments follow their parameters from one grouping to another; options never do."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from ray.rllib.utils.numpy import convert_to_numpy

from rllib_minestudio.algorithms.learner.gradient_step import (
    restore_moments,
    restore_optimizers,
)
from rllib_minestudio.errors import CheckpointError
from rllib_minestudio.models.fine_tuning import freeze, parameter_groups
from tests.algorithms.optimizer_steps import adamw_step

LR = 0.01
FACTORS = {"b.*": 0.5, "c.weight": 4.0}


def network():
    """Six parameters; a and c are of one shape."""
    torch.manual_seed(0)
    return torch.nn.ModuleDict(
        {"a": torch.nn.Linear(3, 2), "b": torch.nn.Linear(2, 3), "c": torch.nn.Linear(3, 2)}
    )


def make_optimizer(model, factors=None, **options):
    optimizer = torch.optim.AdamW(parameter_groups(model, factors or {}, **options), lr=0.0)
    for group in optimizer.param_groups:
        group["lr"] = LR * group["lr_factor"]
    return optimizer


def learning(model):
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def saved_by(optimizer):
    """An optimizer's state in a checkpoint."""
    return copy.deepcopy(convert_to_numpy(optimizer.state_dict()))


def step(model, optimizer, seed):
    """A step with random gradients, which it returns."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in learning(model).values():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    optimizer.step()
    return {name: p.grad.clone() for name, p in learning(model).items()}


def trained(factors=None, frozen=(), **options):
    """A network and its optimizer after three steps."""
    model = network()
    freeze(model, frozen)
    optimizer = make_optimizer(model, factors, **options)
    for seed in range(3):
        step(model, optimizer, seed)
    return model, optimizer


def moments_of(model, optimizer):
    """By name."""
    return {name: optimizer.state[p] for name, p in learning(model).items() if p in optimizer.state}


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, moments in expected.items():
        assert moments.keys() == {"step", "exp_avg", "exp_avg_sq"}
        for key, value in moments.items():
            torch.testing.assert_close(actual[name][key], value, rtol=0, atol=0)


@pytest.mark.parametrize("then", [{}, FACTORS], ids=["one group", "three groups"])
@pytest.mark.parametrize("now", [{}, FACTORS, {"a.*": 2.0, "*.bias": 0.1}])
def test_moments_follow_names_into_any_groups_and_the_next_step_uses_both(then, now):
    model, optimizer = trained(then, weight_decay=0.3, eps=1e-3)
    other = make_optimizer(model, now, weight_decay=0.1, eps=1e-2)
    options = [{k: v for k, v in group.items() if k != "params"} for group in other.param_groups]
    restore_moments(other, saved_by(optimizer))
    before = {name: p.detach().clone() for name, p in learning(model).items()}
    moments = copy.deepcopy(moments_of(model, other))

    assert_same(moments, moments_of(model, optimizer))
    assert options == [
        {k: v for k, v in group.items() if k != "params"} for group in other.param_groups
    ]
    gradients = step(model, other, seed=9)
    for group in other.param_groups:
        for name in group["param_names"]:
            expected = adamw_step(
                before[name],
                gradients[name],
                moments[name],
                lr=LR * group["lr_factor"],
                weight_decay=0.1,
                eps=1e-2,
            )
            torch.testing.assert_close(learning(model)[name], expected, rtol=1e-5, atol=1e-7)


def test_what_no_longer_learns_is_dropped_and_what_begins_to_learn_begins_without_moments():
    model, optimizer = trained(FACTORS, frozen=["a.*"])
    expected = moments_of(model, optimizer)
    del expected["b.bias"]
    changed = network()
    freeze(changed, ["b.bias"])
    other = make_optimizer(changed, {"c.*": 2.0})
    restore_moments(other, saved_by(optimizer))
    assert_same(moments_of(changed, other), expected)
    step(changed, other, seed=9)
    steps = {name: float(m["step"]) for name, m in moments_of(changed, other).items()}
    assert steps == {"a.weight": 1, "a.bias": 1, "b.weight": 4, "c.weight": 4, "c.bias": 4}


def test_moments_from_before_a_restore_are_gone():
    """Also of parameters that had none when the state was saved: `b` was left alone."""
    model = network()
    optimizer = make_optimizer(model)
    for name, parameter in model.named_parameters():
        parameter.grad = None if name.startswith("b") else torch.ones_like(parameter)
    optimizer.step()
    later, other = trained(FACTORS)
    restore_moments(other, saved_by(optimizer))
    assert_same(moments_of(later, other), moments_of(model, optimizer))
    assert len(moments_of(later, other)) == 4


def test_the_saved_arrays_stay_as_they_are():
    """Ray's are read-only views of memory that all learners of a machine see."""
    _, optimizer = trained()
    state = saved_by(optimizer)
    arrays = [m for moments in state["state"].values() for m in moments.values() if np.ndim(m)]
    for array in arrays:
        array.flags.writeable = False
    kept = copy.deepcopy(arrays)
    others = [make_optimizer(network()) for _ in range(2)]
    for other in others:
        restore_moments(other, state)
    tensors = [m for other in others for moments in other.state.values() for m in moments.values()]
    assert len({tensor.data_ptr() for tensor in tensors}) == len(tensors) == 2 * 6 * 3
    for tensor in tensors:
        tensor.add_(1.0)
    for array, before in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(array, before)


NUMBERS = np.arange(3.0)
"""An array where a mapping belongs: looking up a name in it is an IndexError."""

EXP_AVG = ("x", "state", "state", 0, "exp_avg")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ((), NUMBERS, "no attribute 'keys'"),
        (("x",), NUMBERS, "IndexError"),
        (("x",), {}, "KeyError: 'state'"),
        (("x", "state"), NUMBERS, "IndexError"),
        (("x", "state", "state"), NUMBERS, "no attribute 'keys'"),
        (("x", "state", "state", 0), NUMBERS, "no attribute 'items'"),
        (("x", "state", "state", 0), {"step": 3.0}, "a.weight has only step, not exp_avg, exp_"),
        (("x", "state", "param_groups"), NUMBERS, "IndexError"),
        (("x", "state", "param_groups", 0, "params", 0), [0], "unhashable"),
        (("x", "state", "param_groups", 0, "param_names"), ["a.weight"], "shorter"),
        (EXP_AVG, None, r"exp_avg of a.weight is object \(\), not float \(2, 3\)"),
        (EXP_AVG, NUMBERS, r"exp_avg of a.weight is float64 \(3,\), not float \(2, 3\)"),
        (EXP_AVG, np.full((2, 3), np.inf), "exp_avg of a.weight has values that are not finite"),
        (EXP_AVG, np.full((2, 3), "1"), "exp_avg of a.weight is <U1"),
        ((*EXP_AVG[:-1], "step"), 10**400, "step of a.weight is object"),
    ],
)
def test_a_damaged_state_is_refused_in_one_sentence(place, value, said):
    _, optimizer = trained()
    root = {"": {"x": {"state": saved_by(optimizer)}}}
    *path, last = ("", *place)
    inner = root
    for key in path:
        inner = inner[key]
    inner[last] = value
    model, other = trained(FACTORS)
    before = copy.deepcopy(moments_of(model, other))
    with pytest.raises(CheckpointError, match=rf"optimizer state is damaged .*{said}"):
        restore_optimizers({"x": other}, root[""])
    assert_same(moments_of(model, other), before)
