"""Compares VPTNetwork with MineStudio's VPTPolicy: python compare_live.py SIZE FOLDER [CHUNK]

MineStudio loads what `export_network` writes to FOLDER; then both go through 40 steps with
episode starts in odd places, a chunk of CHUNK frames (64) with its gradients, and one optimizer
step. A shorter chunk needs less memory.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
from make_golden import import_vpt_policy, run_chunk

from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.export import export_network
from rllib_minestudio.models.vpt.heads import entropy, kl_divergence, log_prob
from rllib_minestudio.models.vpt.recurrent_state import VPTState
from rllib_minestudio.models.vpt.rollout_session import RolloutSession
from rllib_minestudio.models.vpt.weight_loading import config_from_checkpoint, load_weights

SIZES = {
    "narrow": {"img_shape": [16, 24, 3], "hidsize": 32, "attention_heads": 4, "impala_width": 0.25},
    "nano": {"temperature": 2.0},
    "deep": {"n_recurrence_layers": 5, "hidsize": 48, "attention_heads": 3, "pointwise_ratio": 2},
    "1x": {"preset": "1x"},
    "2x": {"preset": "2x"},
    "3x": {"preset": "3x"},
}
STEPS = 40
TOLERANCE = 5e-5
RATE = 1e-3
LOGIT_STD = 6.4
"""Of the logits at every size, about: errors are in proportion to it."""


def close(actual, expected, scale=1.0, what=""):
    """Equal within the tolerance of float32 sums in another order."""
    message = (lambda text: f"{what}: {text}") if what else None
    torch.testing.assert_close(
        actual, expected, rtol=TOLERANCE, atol=TOLERANCE * scale, msg=message
    )


def play_steps(policy, network, image, first):
    """Steps of both, and of a rollout session; returns MineStudio's state for each of the two."""
    theirs, ours = policy.initial_state(2), network.initial_state(2)
    session = RolloutSession(network, 2)
    with torch.no_grad():
        for t in range(STEPS):
            now = slice(t, t + 1)
            logits, value, theirs = run_chunk(policy, image[:, now], first[:, now], theirs)
            output = network(image[:, now], first[:, now], ours)
            ours = output.state
            for name in logits:
                close(output.logits[name], logits[name], what=f"{name} at step {t}")
            close(output.value_bt, value, what=f"value at step {t}")
            decision = session.act(image[:, t], first[:, t])
            denormalized = policy.value_head.denormalize(value.unsqueeze(-1)).flatten()
            close(decision.value_b, denormalized, what=f"session at step {t}")
    masks, keys, values = theirs[0::3], theirs[1::3], theirs[2::3]
    assert all(torch.equal(ours.mask, mask[:, 0]) for mask in masks)
    close(ours.keys, torch.stack(keys, 1), what="keys")
    close(ours.values, torch.stack(values, 1), what="values")
    # Gradients are compared from the same state: where states differ in their last bits, one of a
    # million ReLUs falls to the other side, which changes gradients a hundred times more.
    return theirs, VPTState(ours.mask, torch.stack(keys, 1), torch.stack(values, 1))


def train_chunk(policy, network, image, first, states):
    """One PPO-like loss, its gradients, and a step of each optimizer."""
    actions = {
        name: torch.randint(0, choices, (*first.shape, 1))
        for name, choices in (("buttons", 8641), ("camera", 121))
    }
    target = 3 + 5 * torch.randn(first.shape)
    theirs, value, _ = run_chunk(policy, image, first, states[0])
    stacked = {name: x.unsqueeze(-2) for name, x in theirs.items()}
    prior = {name: torch.randn_like(x).log_softmax(-1) for name, x in theirs.items()}
    heads = policy.pi_head
    log_p = heads.logprob(actions, stacked)
    kl = heads.kl_divergence(stacked, {n: x.unsqueeze(-2) for n, x in prior.items()})
    value_loss = policy.value_head.loss(value.unsqueeze(-1), target.unsqueeze(-1))
    (log_p.mean() + 0.2 * kl.mean() + 0.5 * value_loss - heads.entropy(stacked).mean()).backward()

    out = network(image, first, states[1])
    network.value_head.normalizer.update(target.mean(), target.square().mean())
    error = (out.value_bt - network.value_head.normalize(target)).square().mean()
    close(log_prob(out.logits, actions), log_p, what="log-probability")
    close(kl_divergence(out.logits, prior), kl.squeeze(-1), scale=5, what="KL")
    our_kl = kl_divergence(out.logits, prior).mean()
    our_entropy = entropy(out.logits).mean()
    (log_prob(out.logits, actions).mean() + 0.2 * our_kl + 0.5 * error - our_entropy).backward()

    parameters = dict(policy.named_parameters())
    for name, parameter in network.named_parameters():
        expected = parameters[name].grad
        close(parameter.grad, expected, scale=max(1.0, expected.abs().max().item()), what=name)
    for module in (policy, network):
        torch.optim.SGD(module.parameters(), lr=RATE).step()
    for name, parameter in network.named_parameters():
        close(parameter.data, parameters[name].data, what=f"{name} after a step")


def main(size, folder, chunk="64"):
    """Compares at one size; raises where the two differ."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    options = {"preset": "nano", "action_head": "joint", **SIZES[size]}
    network = VPTNetwork(VPTConfig.from_options(options))
    for head in network.pi_head.values():  # new ones are nearly constant
        torch.nn.init.normal_(head.linear_layer.weight, std=LOGIT_STD / network.config.hidsize**0.5)
    export_network(network, folder)
    assert config_from_checkpoint(folder) == network.config
    policy = import_vpt_policy().from_pretrained(folder).train()
    load_weights(network, folder)
    frames = STEPS + int(chunk)
    shape = (2, frames, *network.config.img_shape)
    image = torch.randint(0, 256, shape, dtype=torch.uint8)
    first = torch.rand(2, frames) < 0.05
    first[0, [STEPS, STEPS + 1, -1]] = True
    states = play_steps(policy, network, image[:, :STEPS], first[:, :STEPS])
    train_chunk(policy, network, image[:, STEPS:], first[:, STEPS:], states)
    print(f"{size}: equal")


if __name__ == "__main__":
    main(*sys.argv[1:])
