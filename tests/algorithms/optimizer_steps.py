"""AdamW written down once more, and an optimizer's step caught in the act to compare with it."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor

from tests.algorithms.toy_envs import tiny_model


def adamw_step(
    weight: Tensor,
    gradient: Tensor,
    moments: Mapping[str, Tensor],
    *,
    lr: float,
    weight_decay: float,
    eps: float,
    betas: tuple[float, float] = (0.9, 0.999),
) -> Tensor:
    """The weight after a step (Loshchilov & Hutter 2019, algorithm 2).

    Args:
        weight: Before it.
        gradient: Of the same shape.
        moments: `step`, `exp_avg`, `exp_avg_sq` before it; {} if there was none yet.
        lr: Of its group.
        weight_decay: Of its group.
        eps: Of its group.
        betas: Of its group.
    """
    beta1, beta2 = betas
    step = float(moments.get("step", 0.0)) + 1
    mean = beta1 * moments.get("exp_avg", 0.0) + (1 - beta1) * gradient
    square = beta2 * moments.get("exp_avg_sq", 0.0) + (1 - beta2) * gradient**2
    mean, square = mean / (1 - beta1**step), square / (1 - beta2**step)
    return weight * (1 - lr * weight_decay) - lr * mean / (square.sqrt() + eps)


def optimizer_of(algorithm):
    """The learner's network, which names the parameters, and its optimizer."""
    learner = algorithm.learner_group._learner
    return learner.policy.network, learner.get_optimizer("default_policy")


def moments_of(algorithm):
    network, optimizer = optimizer_of(algorithm)
    return {
        name: copy.deepcopy(optimizer.state[p])
        for name, p in network.named_parameters()
        if p in optimizer.state
    }


class FirstStep:
    """What the optimizer's next step found and made, by parameter."""

    def __init__(self, algorithm):
        self._network, optimizer = optimizer_of(algorithm)
        self._moments = moments_of(algorithm)
        self.before = self.after = None
        optimizer.register_step_pre_hook(self._note_before)
        optimizer.register_step_post_hook(self._note_after)

    def _learning(self):
        return {n: p for n, p in self._network.named_parameters() if p.grad is not None}

    def _note_before(self, *_):
        if self.before is None:
            self.before = {
                n: (p.detach().clone(), p.grad.clone()) for n, p in self._learning().items()
            }

    def _note_after(self, *_):
        if self.after is None:
            self.after = {n: p.detach().clone() for n, p in self._learning().items()}

    def assert_taken_with(self, lr_of, **options):
        """`lr_of` gives the rate of a parameter, by name."""
        assert len(self.after) > 10
        for name, (weight, gradient) in self.before.items():
            moments = self._moments.get(name, {})
            expected = adamw_step(weight, gradient, moments, lr=lr_of(name), **options)
            torch.testing.assert_close(self.after[name], expected, rtol=1e-5, atol=1e-7, msg=name)


def check_restored_with_other_options(make_config, train, folder):
    """Train, save, restore into an algorithm with other options, and train again.

    Args:
        make_config: Takes options for `training`.
        train: Takes an algorithm; one step of the optimizer at least.
        folder: For the checkpoint.
    """
    frozen_then, frozen_now = ["net.final_ln.*"], ["net.img_process.*"]
    first = make_config(
        lr=2e-3, lr_factors={"value_head.*": 5.0}, model=tiny_model(freeze=frozen_then)
    ).build_algo()
    train(first)
    saved = moments_of(first)
    checkpoint = first.save_to_path(folder / "checkpoint")
    first.stop()

    options = {"weight_decay": 0.3, "eps": 1e-2}
    second = make_config(
        lr=1e-3,
        lr_factors={"net.*": 0.5, "pi_head.*": 2.0},
        weight_decay=0.3,
        adam_eps=1e-2,
        model=tiny_model(freeze=frozen_now),
    ).build_algo()
    second.restore_from_path(checkpoint)
    network, optimizer = optimizer_of(second)
    learning = {name for name, p in network.named_parameters() if p.requires_grad}
    moments = moments_of(second)
    assert {"net.final_ln.weight"} <= learning - moments.keys()
    assert moments.keys() == {name for name in saved if "img_process" not in name}
    for name, values in moments.items():
        torch.testing.assert_close(values, saved[name], rtol=0, atol=0, msg=name)
    assert [group["lr_factor"] for group in optimizer.param_groups] == [0.5, 2.0, 1.0]
    for group in optimizer.param_groups:
        assert {name: group[name] for name in options} == options
        assert group["betas"] == (0.9, 0.999)
    step = FirstStep(second)
    train(second)
    factors = {"net": 0.5, "pi_head": 2.0}
    step.assert_taken_with(lambda name: 1e-3 * factors.get(name.split(".")[0], 1.0), **options)
    second.stop()
