"""Checks that a policy keeps the contract of docs/policies.md.

They are to policies what gymnasium's `check_env` is to environments::

    check_policy(lambda: MyPolicy(observation_space=..., action_space=..., model_config={...}))

or, one by one in a test suite::

    @pytest.mark.parametrize("check", POLICY_CHECKS)
    def test_my_policy(check):
        check(make_my_policy)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rllib_minestudio.errors import PolicyContractError
from rllib_minestudio.foundation.observations import flattened, nested
from rllib_minestudio.models.acting import State
from rllib_minestudio.models.policy import ACTION_DIST, LOGITS, VALUE, RecurrentRLModule
from rllib_minestudio.models.value_head import ValueHead

TOLERANCE = 1e-4
"""Absolute and relative tolerance between two ways of computing the same numbers."""

MakePolicy = Callable[[], RecurrentRLModule]
"""Creates the policy, with new random weights at each call."""

Outputs = dict[str, Tensor]


def check_policy(make: MakePolicy) -> None:
    """Run all of `POLICY_CHECKS`.

    Raises:
        PolicyContractError: The policy breaks the contract; the message says where.
    """
    for check in POLICY_CHECKS:
        check(make)


def check_declarations(make: MakePolicy) -> None:
    """Check that the heads, parameters and initial state are as the contract says."""
    policy = make()
    _require(
        isinstance(policy, RecurrentRLModule),
        f"{type(policy).__name__} is not a RecurrentRLModule.",
    )
    _require(
        isinstance(policy.value_head, ValueHead),
        f"value_head is a {type(policy.value_head).__name__}: it must be a ValueHead, whose "
        "statistics normalise value targets.",
    )
    heads, space = _run(policy)[ACTION_DIST].heads, policy.action_space
    _require(
        list(heads) == list(space.spaces),
        f"the heads are {list(heads)}, the action space has {list(space.spaces)}: names and order "
        "must agree.",
    )
    own = {id(parameter) for parameter in policy.network.parameters()}
    stray = [name for name, p in policy.named_parameters() if id(p) not in own]
    _require(not stray, f"{stray} are parameters outside `network`: they would not be saved.")
    for name, tensor in policy.initial_state(BATCH).items():
        _require(
            tensor.shape[:1] == (BATCH,),
            f"initial_state({BATCH})[{name!r}] is {tuple(tensor.shape)}: the batch comes first.",
        )


def check_step_by_step(make: MakePolicy) -> None:
    """Check that chunks of any length give the same numbers and memory."""
    policy, first = make(), first_flags()
    obs = observations(policy)
    whole = _run(policy, obs, first)
    for length in (1, 3):
        state, parts = policy.initial_state(BATCH), []
        for start in range(0, TIME, length):
            chunk = slice(start, start + length)
            parts.append(_run(policy, chunk_of(obs, chunk), first[:, chunk], state))
            state = parts[-1]["state_out"]
        for name, expected in _numbers(whole).items():
            found = torch.cat([_numbers(part)[name] for part in parts], dim=1)
            _same(f"{name}, in chunks of {length} instead of {TIME}", found, expected)
        _same_state(f"memory after chunks of {length}", state, whole["state_out"])


def check_memory_ends_at_first(make: MakePolicy) -> None:
    """Check that everything before a true `first` is forgotten."""
    policy = make()
    obs = observations(policy)
    start = TIME // 2
    first = torch.zeros(BATCH, TIME, dtype=torch.bool)
    first[:, start] = True
    joined = _numbers(_run(policy, obs, first))
    alone = _numbers(_run(policy, chunk_of(obs, slice(start, None)), first[:, start:]))
    for name, expected in alone.items():
        _same(f"{name} of an episode after another one", joined[name][:, start:], expected)
    no_first = torch.zeros_like(first)
    remembered = _numbers(_run(policy, obs, no_first))["value"][:, start:]
    _require(
        not torch.equal(remembered, alone["value"]) or not policy.initial_state(1),
        "the past has no influence at all: a policy with a state must use it.",
    )


def check_causality(make: MakePolicy) -> None:
    """Check that nothing depends on later observations or on other rows of the batch."""
    policy, first = make(), first_flags()
    obs = observations(policy)
    expected = _numbers(_run(policy, obs, first))
    later = _numbers(_run(policy, disturbed(obs, slice(TIME // 2, None)), first))
    alone = _numbers(_run(policy, row_of(obs, 1), first[1:2]))
    for name, numbers in expected.items():
        _same(f"{name} before a change", later[name][:, : TIME // 2], numbers[:, : TIME // 2])
        _same(f"{name} of a row on its own", alone[name], numbers[1:2])


def check_distribution(make: MakePolicy) -> None:
    """Check that samples, log-probabilities, entropy and KL are those of `logits`."""
    policy = make()
    out, other = _run(policy), _run(make())[ACTION_DIST]
    distribution, joint = out[ACTION_DIST], dict(out[LOGITS])
    sample = distribution.sample()
    log_prob = sum(
        joint[name].gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        for name, tokens in sample.actions.items()
    )
    _same("log_prob of a sample", sample.log_prob, log_prob)
    _same("log_prob", distribution.log_prob(sample.actions), log_prob)
    entropy = kl = torch.zeros(BATCH, TIME)
    for name, logits in joint.items():
        _same(f"sum of the probabilities of {name}", logits.exp().sum(-1), torch.ones(BATCH, TIME))
        entropy = entropy - (logits.exp() * logits).sum(-1)
        kl = kl + (logits.exp() * (logits - other.logits[name])).sum(-1)
        best = distribution.mode().actions[name].unsqueeze(-1)
        _same(f"mode of {name}", logits.gather(-1, best).squeeze(-1), logits.amax(-1))
    _same("entropy", distribution.entropy(), entropy)
    _same("KL to another policy", distribution.kl_divergence(other), kl)
    _same("KL to itself", distribution.kl_divergence(distribution), torch.zeros(BATCH, TIME))


def check_gradients(make: MakePolicy) -> None:
    """Check that a chunk's loss gives every learning parameter a finite gradient."""
    policy = make()
    with torch.no_grad():  # a head that begins at 0 passes no gradient on
        for parameter in policy.network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.02)
    out = policy.forward_train({"obs": observations(policy), "first": first_flags()})
    actions = out[ACTION_DIST].sample().actions
    loss = out[ACTION_DIST].log_prob(actions).sum() + out[ACTION_DIST].entropy().sum()
    (loss + out[VALUE].square().sum()).backward()
    for name, parameter in policy.network.named_parameters():
        if parameter.requires_grad:
            _require(parameter.grad is not None, f"parameter {name!r} gets no gradient.")
            assert parameter.grad is not None
            finite = bool(parameter.grad.isfinite().all())
            _require(finite, f"the gradient of {name!r} is not finite.")


def check_rollout(make: MakePolicy) -> None:
    """Check that acting gives the learner's numbers, for all environments or some."""
    policy, first = make(), first_flags()
    obs = observations(policy)
    learner = _run(policy, obs, first)
    session = policy.make_rollout_session(BATCH)
    rows = torch.arange(BATCH)
    for t in range(TIME):
        now = chunk_of(obs, t)
        expected_value = learner["vf_preds"][:, t]
        _same(f"value of step {t}, without acting", session.value(now, first[:, t]), expected_value)
        nobody = torch.zeros(BATCH, dtype=torch.bool)
        if t % 3 == 1:  # computed, but discarded
            session.act(now, first[:, t], moving_n=nobody, explore=False)
        decision = session.act(now, first[:, t], rows=None if t % 2 else rows)
        log_prob = learner[ACTION_DIST].log_prob(
            {name: t.unsqueeze(1).expand(-1, TIME) for name, t in decision.actions.items()}
        )[:, t]
        _same(f"log_prob of step {t}", decision.log_prob_b, log_prob)
        _same(f"value of step {t}", decision.value_b, expected_value)
    _same_state("the session's memory", session.state(), learner["state_out"])


def check_saving(make: MakePolicy) -> None:
    """Check that a restored policy is the same, and that a copy is independent."""
    policy, other = make(), make()
    expected = _numbers(_run(policy))
    other.set_state(policy.get_state())
    copied = copy.deepcopy(policy)
    with torch.no_grad():
        for parameter in policy.network.parameters():
            parameter.zero_()
    for name, numbers in expected.items():
        _same(f"{name} after get_state and set_state", _numbers(_run(other))[name], numbers)
        _same(f"{name} of a copy whose original changed", _numbers(_run(copied))[name], numbers)


def check_modes(make: MakePolicy) -> None:
    """Check that training and evaluation mode agree: no dropout, no batch statistics."""
    policy = make()
    expected = _numbers(_run(policy))
    policy.eval()
    obs, first = observations(policy), first_flags()
    latent, _ = policy.latent(obs, first, policy.initial_state(BATCH))
    _same("value in evaluation mode", policy.value_head(latent), expected["value"])


POLICY_CHECKS: tuple[Callable[[MakePolicy], None], ...] = (
    check_declarations,
    check_step_by_step,
    check_memory_ends_at_first,
    check_causality,
    check_distribution,
    check_gradients,
    check_rollout,
    check_saving,
    check_modes,
)
"""All checks; each takes a `MakePolicy`."""


@torch.no_grad()
def _run(
    policy: RecurrentRLModule,
    obs: Mapping[str, Any] | None = None,
    first: Tensor | None = None,
    state: State | None = None,
) -> dict[str, Any]:
    """The outputs of `forward_train` for a chunk, by default a sample."""
    batch = {
        "obs": observations(policy) if obs is None else obs,
        "first": first_flags() if first is None else first,
        "state_in": state,
    }
    return policy.forward_train(batch)


def _numbers(out: Mapping[str, Any]) -> Outputs:
    """A chunk's outputs for each step, [B, T, ...] each."""
    return {"value": out[VALUE], **{f"logits of {n}": x for n, x in dict(out[LOGITS]).items()}}


def _same_state(what: str, found: State, expected: State) -> None:
    _require(
        found.keys() == expected.keys(), f"{what} has {list(found)} instead of {list(expected)}."
    )
    for name, tensor in expected.items():
        _same(f"{name} of {what}", found[name].float(), tensor.float())


def _same(what: str, found: Tensor, expected: Tensor) -> None:
    _require(
        found.shape == expected.shape,
        f"{what} is {tuple(found.shape)} instead of {tuple(expected.shape)}.",
    )
    if not torch.allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE):
        off = float((found - expected).abs().max())
        raise PolicyContractError(f"{what} is off by {off:.2g}: it must be the same.")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise PolicyContractError(otherwise[0].upper() + otherwise[1:])


# --------------------------------------------- random chunks of observations to check policies with

BATCH, TIME = 3, 11
"""Rows and steps of a chunk."""


def observations(policy: RecurrentRLModule) -> dict[str, Any]:
    """Return a chunk of samples of the space, nested, [B, T, ...] each; the same at every call."""
    space = policy.observation_space
    space.seed(0)
    samples = [flattened(space.sample()) for _ in range(BATCH * TIME)]
    flat = {
        name: torch.from_numpy(np.stack([np.asarray(sample[name]) for sample in samples]))
        for name in policy.observation_parts
    }
    return nested({name: x.view(BATCH, TIME, *x.shape[1:]) for name, x in flat.items()})


def first_flags() -> Tensor:
    """Return [B, T] bool: episodes begin at the start, midway, in consecutive steps, or never."""
    first = torch.zeros(BATCH, TIME, dtype=torch.bool)
    first[0, 0] = first[0, 4] = first[1, 5] = first[1, 6] = True
    return first


def chunk_of(obs: Mapping[str, Any], time: slice | int) -> dict[str, Any]:
    """Return some steps of a chunk; an integer drops the time axis."""
    return _mapped(obs, lambda part: part[:, time])


def row_of(obs: Mapping[str, Any], row: int) -> dict[str, Any]:
    """Return one row of a chunk, as a chunk."""
    return _mapped(obs, lambda part: part[row : row + 1])


def disturbed(obs: Mapping[str, Any], time: slice) -> dict[str, Any]:
    """Return a chunk in which some steps are exchanged between rows."""

    def shuffled(part: Tensor) -> Tensor:
        changed = part.clone()
        changed[:, time] = part[:, time].roll(1, dims=0)
        return changed

    return _mapped(obs, shuffled)


def _mapped(obs: Mapping[str, Any], function: Any) -> dict[str, Any]:
    return nested({name: function(part) for name, part in flattened(obs).items()})
