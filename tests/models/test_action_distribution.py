"""A product of choices against the list of its combinations, and both against closed forms."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_minestudio.models.distributions import (
    ActionDistribution,
    FactoredCategorical,
    JointCategorical,
)
from rllib_minestudio.models.vpt import VPTConfig, acting, network
from rllib_minestudio.models.vpt.network import BUTTON_SIZES, CAMERA_SIZES, product_membership

LARGEST_UNIFORM = 1 - 2**-53
SPACES = {"buttons": (BUTTON_SIZES, True), "camera": (CAMERA_SIZES, False)}
SMALL = ((3, 1, 2), True)

every_space = pytest.mark.parametrize("space", [*SPACES.values(), SMALL], ids=[*SPACES, "small"])


def _scores(space, *batch, seed=0, scale=2.0, dtype=torch.float64):
    sizes, exclusive = space
    generator = torch.Generator().manual_seed(seed)
    shape = (*batch, sum(sizes) + exclusive)
    scores = scale * torch.randn(shape, generator=generator, dtype=dtype)
    if exclusive:  # as probable as all combinations together, so that no term is lost
        partitions = [group.logsumexp(-1) for group in scores[..., :-1].split(sizes, dim=-1)]
        scores[..., -1] += sum(partitions)
    return scores


def _factored(scores, space):
    return FactoredCategorical(scores, *space)


def _joint(scores, space):
    """The same distribution with every token's score written out."""
    return JointCategorical(scores @ product_membership(*space).T.to(scores.dtype))


def _tokens(space, *batch, seed=0):
    sizes, exclusive = space
    count = math.prod(sizes) + exclusive
    tokens = torch.randint(0, count, batch, generator=torch.Generator().manual_seed(seed))
    if exclusive and tokens.dim():
        tokens.view(-1)[0] = count - 1
    return tokens


@every_space
def test_log_prob_of_every_token(space):
    scores = _scores(space)
    expected = _joint(scores, space).logits
    factored = _factored(scores.expand(len(expected), -1), space)
    log_p = factored.log_prob(torch.arange(len(expected)))
    torch.testing.assert_close(log_p, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(factored.logits[0], expected, rtol=1e-12, atol=1e-12)


@every_space
@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
@pytest.mark.parametrize("quantity", ["log_prob", "entropy", "kl_divergence", "logits"])
def test_values_and_gradients(space, batch, quantity):
    ours, others = (_scores(space, *batch, seed=seed).requires_grad_() for seed in (1, 2))
    tokens = _tokens(space, *batch)

    def value(kind):
        distribution = kind(ours, space)
        if quantity == "log_prob":
            return distribution.log_prob(tokens)
        if quantity == "kl_divergence":
            return distribution.kl_divergence(kind(others, space))
        return distribution.entropy() if quantity == "entropy" else distribution.logits

    results = []
    for kind in (_factored, _joint):
        found = value(kind)
        assert found.shape[: len(batch)] == batch
        weights = torch.linspace(0.5, 1.5, found.numel(), dtype=found.dtype).view(found.shape)
        inputs = (ours, others) if quantity == "kl_divergence" else (ours,)
        results.append((found, *torch.autograd.grad((weights * found).sum(), inputs)))
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-11)


def test_gradients_against_finite_differences():
    ours, others = (_scores(SMALL, 2, seed=seed).requires_grad_() for seed in (1, 2))

    def quantities(ours, others):
        p, q = _factored(ours, SMALL), _factored(others, SMALL)
        return p.log_prob(torch.tensor([1, 6])), p.entropy(), p.kl_divergence(q)

    assert torch.autograd.gradcheck(quantities, (ours, others))


@every_space
def test_single_precision(space):
    """Of the order of float32's own rounding, with scores as a trained head has them."""
    scores, others = (_scores(space, 64, seed=seed, scale=4.0) for seed in (3, 4))
    tokens = _tokens(space, 64)
    exact, q_exact = _factored(scores, space), _factored(others, space)
    found, q_found = _factored(scores.float(), space), _factored(others.float(), space)
    for value, expected in (
        (found.log_prob(tokens), exact.log_prob(tokens)),
        (found.entropy(), exact.entropy()),
        (found.kl_divergence(q_found), exact.kl_divergence(q_exact)),
    ):
        assert value.dtype == torch.float32
        torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=1e-5)


@every_space
def test_mode(space):
    scores = _scores(space, 500)
    expected = _joint(scores, space).mode()
    assert torch.equal(_factored(scores, space).mode(), expected)
    if space[1]:
        last = math.prod(space[0])
        assert 0 < (expected == last).sum() < 500


@every_space
def test_one_number_draws_the_same_token_from_either(space):
    scores = _scores(space, 1000)
    uniform = torch.rand(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = _joint(scores, space).sample(uniform)
    assert torch.equal(_factored(scores, space).sample(uniform), expected)


@settings(max_examples=60, deadline=None)
@given(
    uniform=st.floats(0, LARGEST_UNIFORM) | st.sampled_from([0.0, LARGEST_UNIFORM]),
    seed=st.integers(0, 2**20),
    scale=st.sampled_from([0.0, 0.1, 1.0, 3.0]),
    name=st.sampled_from([*SPACES]),
)
def test_any_number_draws_a_token_whose_interval_it_is_in(uniform, seed, scale, name):
    scores = _scores(SPACES[name], seed=seed, scale=scale)
    joint, factored = _joint(scores, SPACES[name]), _factored(scores, SPACES[name])
    place = torch.tensor(uniform, dtype=torch.float64)
    token = factored.sample(place)
    upper = joint.logits.exp().cumsum(-1)
    rounding = 1e-12
    assert upper[token] >= uniform - rounding
    assert token == 0 or upper[token - 1] <= uniform + rounding


@every_space
def test_the_edges_of_the_interval(space):
    scores = _scores(space, 200, scale=1.0)
    for number in (0.0, LARGEST_UNIFORM):
        uniform = torch.full((200,), number, dtype=torch.float64)
        expected = _joint(scores, space).sample(uniform)
        assert torch.equal(_factored(scores, space).sample(uniform), expected)
        assert torch.all(expected == (0 if number == 0 else math.prod(space[0]) + space[1] - 1))


def test_where_the_exclusive_token_begins():
    scores = torch.zeros(2, 7, dtype=torch.float64)
    scores[:, -1] = math.log(6)  # as probable as the six combinations together
    tokens = _factored(scores, SMALL).sample(torch.tensor([0.5 - 1e-12, 0.5], dtype=torch.float64))
    assert tokens.tolist() == [5, 6]


@pytest.mark.parametrize("kind", [_factored, _joint])
def test_frequencies(kind):
    torch.manual_seed(0)
    scores = _scores(SMALL, scale=0.5)
    tokens = kind(scores.expand(20_000, -1), SMALL).sample()
    frequencies = torch.bincount(tokens, minlength=7).double() / 20_000
    expected = _joint(scores, SMALL).logits.exp()
    torch.testing.assert_close(frequencies, expected, rtol=0, atol=0.015)


@pytest.mark.parametrize("kind", [_factored, _joint])
@pytest.mark.parametrize("number", [0.0, 0.5, LARGEST_UNIFORM])
@pytest.mark.parametrize("token", range(7))
def test_the_impossible_is_never_drawn(kind, number, token):
    scores = torch.full((7,), -math.inf)
    scores[product_membership(*SMALL)[token].bool()] = 0.0
    if kind is _joint:
        distribution = JointCategorical(torch.where(torch.arange(7) == token, 0.0, -math.inf))
    else:
        scores[:6] = scores[:6].clamp(min=-1e4)  # a group must have some choice
        distribution = _factored(scores, SMALL)
    assert distribution.sample(torch.tensor(number, dtype=torch.float64)).item() == token


@every_space
def test_extreme_scores_stay_finite(space):
    sizes, exclusive = space
    generator = torch.Generator().manual_seed(0)
    shape = (400, sum(sizes) + exclusive)
    scores, others = (
        (1e4 * torch.randint(-1, 2, shape, generator=generator).float()).requires_grad_()
        for _ in range(2)
    )
    tokens = _tokens(space, 400)
    p, q = _factored(scores, space), _factored(others, space)
    values = p.log_prob(tokens), p.entropy(), p.kl_divergence(q)
    gradients = torch.autograd.grad(sum(value.sum() for value in values), (scores, others))
    assert all(torch.isfinite(x).all() for x in (*values, *gradients, p.logits))
    assert torch.all(values[1] >= 0)
    drawn = p.sample()
    assert torch.all(p.log_prob(drawn) > -20)


@pytest.mark.parametrize("kind", ["joint", "factored"])
@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
def test_nothing_is_written_out_unless_asked_for(kind, batch, monkeypatch):
    policy = _policy(kind)(torch.randn(*batch, 128))
    other = _policy(kind)(torch.randn(*batch, 128))
    names = list(policy.logits)
    assert names == ["buttons", "camera"] and len(policy.logits) == 2

    drawn = policy.sample(torch.rand(*batch, 2, dtype=torch.float64))
    best = policy.mode()
    for actions in (drawn.actions, best.actions):
        assert all(tokens.shape == batch for tokens in actions.values())
    assert drawn.log_prob.shape == best.log_prob.shape == batch
    assert drawn.log_prob.dtype == torch.float32
    assert torch.equal(policy.log_prob(drawn.actions), drawn.log_prob)
    assert policy.entropy().shape == policy.kl_divergence(other).shape == batch
    if kind == "factored":
        assert not any("logits" in vars(head) for head in policy.heads.values())
    assert policy.logits["camera"].shape == (*batch, 121)
    assert policy.logits["camera"] is policy.logits["camera"]
    if kind == "factored":
        assert "logits" not in vars(policy.heads["buttons"])


def test_scores_must_be_as_many_as_choices():
    with pytest.raises(ValueError, match="7 scores expected, not 6"):
        FactoredCategorical(torch.zeros(6), *SMALL)


def test_divergence_between_unlike_classes():
    scores, others = (_scores(SPACES["buttons"], 3, seed=seed) for seed in (1, 2))
    pairs = [
        (_factored(x, SPACES["buttons"]), _joint(x, SPACES["buttons"])) for x in (scores, others)
    ]
    expected = pairs[0][1].kl_divergence(pairs[1][1])
    for ours, other in [(0, 0), (0, 1), (1, 0)]:
        torch.testing.assert_close(pairs[0][ours].kl_divergence(pairs[1][other]), expected)
    # As many tokens, but other groups.
    flat = FactoredCategorical(_scores(((6,), True)), (6,), True)
    small = _factored(_scores(SMALL, seed=5), SMALL)
    expected = (flat.logits.exp() * (flat.logits - small.logits)).sum()
    torch.testing.assert_close(flat.kl_divergence(small), expected)


def _policy(kind):
    """Heads as they are in the network, with weights that make the tokens differ."""
    torch.manual_seed(0)
    policy = network.make_action_heads(
        VPTConfig.from_options({"preset": "nano", "action_head": kind})
    )
    for head in policy.values():
        torch.nn.init.normal_(head.linear_layer.weight, std=0.1)
    return policy


@pytest.mark.parametrize("kind", ["joint", "factored"])
def test_the_heads_offer_the_distribution_of_their_logits(kind):
    policy, latent = _policy(kind), torch.randn(2, 3, 128)
    distribution = policy(latent)
    for name, head in policy.items():
        torch.testing.assert_close(distribution.logits[name], head(latent))
    assert set(policy.state_dict()) == {
        f"{name}.linear_layer.{part}"
        for name in ("buttons", "camera")
        for part in ("weight", "bias")
    }


@pytest.mark.parametrize("normalised", [False, True])
def test_joint_heads_give_the_same_bits_as_functions_of_logits(normalised):
    policy = _policy("joint")
    latent, other_latent = torch.randn(2, 4, 8, 128)
    logits, other_logits = (
        {name: head(x) for name, head in policy.items()} for x in (latent, other_latent)
    )
    if normalised:
        distribution, other = (
            ActionDistribution(
                {name: JointCategorical(x, normalised=True) for name, x in y.items()}
            )
            for y in (logits, other_logits)
        )
    else:
        distribution, other = policy(latent), policy(other_latent)
    uniform = torch.rand(4, 8, 2, dtype=torch.float64)
    drawn = distribution.sample(uniform)
    columns = {name: token.unsqueeze(-1) for name, token in drawn.actions.items()}
    before = acting.sample(logits, uniform=uniform)
    pairs = [
        (distribution.log_prob(drawn.actions), network.log_prob(logits, columns)),
        (distribution.entropy(), network.entropy(logits)),
        (distribution.kl_divergence(other), network.kl_divergence(logits, other_logits)),
    ]
    for found, expected in pairs:
        assert torch.equal(found, expected)
        gradients = [
            torch.autograd.grad(x.sum(), list(policy.parameters()), retain_graph=True)
            for x in (found, expected)
        ]
        assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    assert all(torch.equal(columns[name], before.actions[name]) for name in columns)
    torch.testing.assert_close(drawn.log_prob, before.log_prob)


def test_constants_made_in_inference_mode_serve_training_as_well():
    sizes = (2, 5)
    with torch.inference_mode():
        FactoredCategorical(torch.zeros(7), sizes).log_prob(torch.tensor(3))
    scores = torch.zeros(7, requires_grad=True)
    FactoredCategorical(scores, sizes).log_prob(torch.tensor(3)).backward()
    assert scores.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", [_factored, _joint])
def test_what_is_computed_without_gradients_has_them_later(kind):
    scores = _scores(SMALL, 4).requires_grad_()
    used, fresh = kind(scores, SMALL), kind(scores, SMALL)
    tokens = used.sample()
    with torch.no_grad():
        assert not used.entropy().requires_grad
        assert used.logits.shape == (4, 7)
    gradients = [
        torch.autograd.grad((x.log_prob(tokens) + x.entropy() + x.logits[:, 2]).sum(), scores)
        for x in (used, fresh)
    ]
    assert gradients[0][0].abs().sum() > 0
    assert torch.equal(gradients[0][0], gradients[1][0])
