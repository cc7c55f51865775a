"""Compares VPTNetwork with MineStudio's VPTPolicy: python compare_live.py SIZE FOLDER [CHUNK]

MineStudio loads what `export_network` writes to FOLDER; then both go through 40 steps with
episode starts in odd places, a chunk of CHUNK frames (64) with its gradients, and one optimizer
step. A shorter chunk needs less memory.
"""

import copy
import sys
from pathlib import Path as File
from unittest import mock

sys.path.insert(0, str(File(__file__).parent))

import torch
from make_golden import import_vpt_policy, run_chunk

from rllib_minestudio import checkpoints
from rllib_minestudio.models.kernels.engine_choice import TORCH
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.acting import InferenceSession
from rllib_minestudio.models.vpt.attention import VPTState
from rllib_minestudio.models.vpt.layers import DownStack
from rllib_minestudio.models.vpt.network import entropy, kl_divergence, log_prob
from rllib_minestudio.models.vpt.weights import config_from_checkpoint, export_network, load_weights

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

FEW_DECISIONS = 0.03
"""What a few ReLUs or pools may change a gradient by that decide the other way in the last bit."""


def close(actual, expected, scale=1.0, what="", tolerance=TOLERANCE):
    """Equal within the tolerance of float32 sums in another order."""
    message = (lambda text: f"{what}: {text}") if what else None
    torch.testing.assert_close(
        actual, expected, rtol=tolerance, atol=tolerance * scale, msg=message
    )


def play_steps(policy, network, image, first):
    """Steps of both, and of a rollout session; returns MineStudio's state for each of the two."""
    theirs, ours = policy.initial_state(2), network.initial_state(2)
    session = InferenceSession(network, 2)
    with torch.no_grad(), torchs_layers():
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


def compare_kernels(policy, network, image, first):
    """Logits by our kernels lie about as near to those of a float64 encoder as MineStudio's do.

    Both round, each in its own order; which of the two is nearer in its worst number is chance.
    """
    exact = copy.deepcopy(network)
    exact.net.img_process = ExactEncoder(network.net.img_process)
    with torch.no_grad():
        theirs, _, _ = run_chunk(policy, image, first, policy.initial_state(2))
        ours = network(image, first, network.initial_state(2)).logits
        expected = exact(image, first, exact.initial_state(2)).logits
    for name, logits in expected.items():
        error, allowed = ((x[name] - logits).abs().max() for x in (ours, theirs))
        assert error <= 1.5 * allowed, f"{name}: {error} by the kernels, {allowed}"


class ExactEncoder(torch.nn.Module):
    """The image encoder in float64, by torch's layers."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = copy.deepcopy(encoder).double()

    def forward(self, image_bthwc):
        x_nchw = image_bthwc.flatten(0, 1).permute(0, 3, 1, 2).double() / 255
        with torchs_layers():
            x = self.encoder.linear(self.encoder.cnn(x_nchw))
        return x.view(*image_bthwc.shape[:2], -1).float()


def torchs_layers():
    """Stacks are computed layer by layer while this context lasts, as MineStudio's are."""
    return mock.patch.object(DownStack, "engine_for", return_value=TORCH)


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

    network.value_head.normalizer.update(target.mean(), target.square().mean())

    def compare_gradients(tolerance):
        out = network(image, first, states[1])
        error = (out.value_bt - network.value_head.normalize(target)).square().mean()
        close(log_prob(out.logits, actions), log_p, what="log-probability")
        close(kl_divergence(out.logits, prior), kl.squeeze(-1), scale=5, what="KL")
        our_kl = kl_divergence(out.logits, prior).mean()
        our_entropy = entropy(out.logits).mean()
        network.zero_grad()
        (log_prob(out.logits, actions).mean() + 0.2 * our_kl + 0.5 * error - our_entropy).backward()
        for name, parameter in network.named_parameters():
            expected = parameters[name].grad
            scale = max(1.0, expected.abs().max().item())
            close(parameter.grad, expected, scale, name, tolerance)

    parameters = dict(policy.named_parameters())
    compare_gradients(FEW_DECISIONS)
    with torchs_layers():
        compare_gradients(TOLERANCE)  # outputs are torch's on both sides, so all decide alike
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
    checkpoint = checkpoints.open(folder)
    assert config_from_checkpoint(checkpoint) == network.config
    policy = import_vpt_policy().from_pretrained(folder).train()
    load_weights(network, checkpoint)
    frames = STEPS + int(chunk)
    shape = (2, frames, *network.config.img_shape)
    image = torch.randint(0, 256, shape, dtype=torch.uint8)
    first = torch.rand(2, frames) < 0.05
    first[0, [STEPS, STEPS + 1, -1]] = True
    compare_kernels(policy, network, image[:, :STEPS], first[:, :STEPS])
    states = play_steps(policy, network, image[:, :STEPS], first[:, :STEPS])
    train_chunk(policy, network, image[:, STEPS:], first[:, STEPS:], states)
    print(f"{size}: equal")


if __name__ == "__main__":
    main(*sys.argv[1:])
