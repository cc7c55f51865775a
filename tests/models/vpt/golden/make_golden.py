"""Writes vpt.npz: numbers of MineStudio's own VPTPolicy, for ours to reproduce.

Run where MineStudio 1.1.6 and what its network needs can be imported::

    pip install torch==2.13.0 numpy einops omegaconf gymnasium gym==0.26.2 rich absl-py cffi \
        huggingface_hub
    pip install --no-deps gym3==0.3.3 minestudio==1.1.6
    python tests/models/vpt/golden/make_golden.py

Weights and inputs are not stored: `random_weights` and `Inputs` derive them from a seed through
numpy's legacy generator, whose stream never changes. Of the 8641 buttons logits, every 97th is
kept. The test that reads the file is tests/models/vpt/test_golden.py.
"""

import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path

import numpy as np
import torch

GOLDEN_FILE = Path(__file__).with_name("vpt.npz")

NETWORK_ARGUMENTS = {
    "attention_heads": 2,
    "attention_memory_size": 40,
    "hidsize": 16,
    "img_shape": (16, 24, 3),
    "impala_chans": (16, 32, 32),
    "impala_width": 0.25,
    "n_recurrence_layers": 2,
    "pointwise_ratio": 4,
    "timesteps": 16,
}
"""A tiny network under the names of MineStudio's checkpoints; the memory holds 24 frames."""

FIXED_ARGUMENTS = {
    "attention_mask_style": "clipped_causal",
    "impala_kwargs": {"post_pool_groups": 1},
    "init_norm_kwargs": {"batch_norm": False, "group_norm_groups": 1},
    "recurrence_is_residual": True,
    "recurrence_type": "transformer",
    "single_output": False,
    "use_pointwise_layer": True,
    "use_pre_lstm_ln": False,
}
"""The same in every published VPT checkpoint; our network has no options for them."""

TEMPERATURE = 2.0
STEPS = 40
CHUNK = 64
KEPT_BUTTONS = slice(None, None, 97)

ADVANTAGE_COEFFICIENT, KL_COEFFICIENT, VALUE_COEFFICIENT, ENTROPY_COEFFICIENT = 1.0, 0.2, 0.5, 0.01


class Inputs:
    """Everything that goes into the two networks; batch of 2."""

    def __init__(self) -> None:
        random = np.random.RandomState(20240611)
        shape = NETWORK_ARGUMENTS["img_shape"]
        frames = STEPS + CHUNK
        self.image = torch.from_numpy(random.randint(0, 256, (2, frames, *shape), dtype=np.uint8))
        first = np.zeros((2, frames), dtype=bool)
        # At the very start, twice in a row, at a chunk's border, mid-chunk, on its last frame.
        first[0, [0, 7, 8, STEPS, STEPS + 30]] = True
        first[1, [0, 29, STEPS + 5, STEPS + CHUNK - 1]] = True
        self.first = torch.from_numpy(first)
        self.actions = {
            "buttons": torch.from_numpy(random.randint(0, 8641, (2, CHUNK, 1))),
            "camera": torch.from_numpy(random.randint(0, 121, (2, CHUNK, 1))),
        }
        self.advantage = torch.from_numpy(random.randn(2, CHUNK).astype(np.float32))
        self.returns = torch.from_numpy((30 + 7 * random.randn(5, 2, CHUNK)).astype(np.float32))
        self.prior = {
            name: torch.log_softmax(
                torch.from_numpy(random.randn(2, CHUNK, choices).astype(np.float32)), -1
            )
            for name, choices in (("buttons", 8641), ("camera", 121))
        }


def random_weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
    """Returns reproducible weights of sensible size for every name but the value statistics."""
    random = np.random.RandomState(7)
    weights = {}
    for name in sorted(shapes):
        shape = shapes[name]
        if "normalizer" in name:
            weights[name] = torch.zeros(shape)
            continue
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 4
        centre = 1.0 if name.endswith(".weight") and len(shape) == 1 else 0.0
        noise = random.randn(*shape) / np.sqrt(fan_in)
        weights[name] = torch.from_numpy((centre + noise).astype(np.float32))
    return weights


def import_vpt_policy() -> type:
    """Imports MineStudio's VPTPolicy without its packages' own imports (simulator, Ray, ...)."""
    spec = importlib.util.find_spec("minestudio")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("minestudio is not importable; see this file's first lines.")
    root = Path(spec.submodule_search_locations[0])
    for name in ("", "utils", "models", "models.vpt", "online"):
        package = types.ModuleType(".".join(filter(None, ("minestudio", name))))
        package.__path__ = [str(root.joinpath(*name.split(".")))]
        package.__spec__ = importlib.machinery.ModuleSpec(package.__name__, None, is_package=True)
        sys.modules[package.__name__] = package
    from minestudio.models.vpt.body import VPTPolicy

    return VPTPolicy


def run_chunk(policy, image, first, state):
    """Runs network and heads; VPTPolicy.forward itself would ignore `first`."""
    (latent, _), state = policy.net({"image": image}, state, context={"first": first})
    logits = {name: x.squeeze(-2) for name, x in policy.pi_head(latent).items()}
    return logits, policy.value_head(latent).squeeze(-1), state


def record_steps(policy, inputs: Inputs, out: dict) -> list:
    """Plays the first STEPS frames one by one and returns the state after them."""
    state = policy.initial_state(2)
    rows = []
    with torch.no_grad():
        for t in range(STEPS):
            logits, value, state = run_chunk(
                policy, inputs.image[:, t : t + 1], inputs.first[:, t : t + 1], state
            )
            rows.append((logits["buttons"][..., KEPT_BUTTONS], logits["camera"], value))
    for name, tensors in zip(("buttons", "camera", "value"), zip(*rows, strict=True), strict=True):
        out[f"steps/{name}"] = torch.cat(tensors, 1)
    out |= {f"steps/state{i}": tensor for i, tensor in enumerate(state)}
    return state


def record_chunk(policy, inputs: Inputs, state: list, out: dict) -> None:
    """Runs the remaining frames as one chunk, and the gradient of a PPO-like loss on it."""
    logits, value, state = run_chunk(
        policy, inputs.image[:, STEPS:], inputs.first[:, STEPS:], state
    )
    pi_head = policy.pi_head
    stacked = {name: x.unsqueeze(-2) for name, x in logits.items()}
    prior = {name: x.unsqueeze(-2) for name, x in inputs.prior.items()}
    log_prob = pi_head.logprob(inputs.actions, stacked)
    entropy = pi_head.entropy(stacked)
    kl = pi_head.kl_divergence(stacked, prior).squeeze(-1)
    value_loss = policy.value_head.loss(value.unsqueeze(-1), inputs.returns[0].unsqueeze(-1))
    loss = (
        -ADVANTAGE_COEFFICIENT * (inputs.advantage * log_prob).mean()
        + KL_COEFFICIENT * kl.mean()
        + VALUE_COEFFICIENT * value_loss
        - ENTROPY_COEFFICIENT * entropy.mean()
    )
    loss.backward()
    out |= {
        "chunk/buttons": logits["buttons"][..., KEPT_BUTTONS],
        "chunk/camera": logits["camera"],
        "chunk/value": value,
        "chunk/log_prob": log_prob,
        "chunk/entropy": entropy,
        "chunk/kl": kl,
        "chunk/loss": loss,
    }
    out |= {f"chunk/state{i}": tensor for i, tensor in enumerate(state)}
    for name, parameter in policy.named_parameters():
        if parameter.grad is not None:
            wide = name.startswith("pi_head.buttons")
            out[f"grad/{name}"] = parameter.grad[KEPT_BUTTONS] if wide else parameter.grad


def record_value_statistics(policy, inputs: Inputs, out: dict) -> None:
    """Feeds five batches of returns to the value head's running statistics."""
    head = policy.value_head
    normalizer = head.normalizer
    for parameter in normalizer.parameters():
        parameter.data.zero_()
    for i, returns in enumerate(inputs.returns):
        head.train()
        out[f"statistics/normalized{i}"] = head.normalize(returns.unsqueeze(-1)).squeeze(-1)
        out[f"statistics/running{i}"] = torch.cat(
            [
                normalizer.running_mean,
                normalizer.running_mean_sq,
                normalizer.debiasing_term.reshape(1),
            ]
        ).clone()
    head.eval()
    out["statistics/denormalized"] = head.denormalize(inputs.advantage.unsqueeze(-1)).squeeze(-1)


def main() -> None:
    """Writes the golden file."""
    torch.set_num_threads(1)
    policy = import_vpt_policy()(
        policy_kwargs=NETWORK_ARGUMENTS | FIXED_ARGUMENTS, temperature=TEMPERATURE
    )
    shapes = {name: tuple(tensor.shape) for name, tensor in policy.state_dict().items()}
    policy.load_state_dict(random_weights(shapes))
    inputs, out = Inputs(), {}
    state = record_steps(policy, inputs, out)
    record_chunk(policy, inputs, state, out)
    record_value_statistics(policy, inputs, out)
    out["names"] = np.array(sorted(shapes))
    np.savez_compressed(
        GOLDEN_FILE,
        **{k: v.detach().numpy() if torch.is_tensor(v) else v for k, v in out.items()},
    )
    print(f"{GOLDEN_FILE}: {GOLDEN_FILE.stat().st_size / 1024:.0f} KiB, {len(out)} arrays")


if __name__ == "__main__":
    main()
