"""VPT's speed on the device beside MineStudio's `VPTPolicy`: acting, and training.

MineStudio's rollout workers allow TensorFloat-32 in products of matrices, and torch allows it in
convolutions, so that theirs run with both, except beside ours in `float32`: what is compared has
the same precision or is the way either is used.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from vpt_calls import (
    CHUNK,
    Chunk,
    images,
    import_vpt_policy,
    make_both,
    our_step,
    our_update,
    prior_latent,
    their_step,
    their_update,
    time_alternately,
)

from gpu_stages.rows import Row, Setting
from rllib_minestudio.models.acting import FLOAT32, TF32, set_arithmetic
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.acting import InferenceSession

GOAL = 2.0
"""How many times as fast as `VPTPolicy` VPT should be ..."""
JUDGED = ("1x", "2x")
"""... at these sizes."""

ENVS_PER_MINIBATCH = 8
"""MineStudio's trainer takes one at a time, where a GPU waits for its kernels to be launched."""

LAYOUTS = 3
"""How often new weights are laid out; the fastest counts."""


class Variant(NamedTuple):
    """A way to compute a network."""

    precision: str
    graph: bool = True
    compiled: bool = False

    @property
    def theirs(self) -> str:
        """The precision in which `VPTPolicy` is timed beside it."""
        return FLOAT32 if self.precision == FLOAT32 else TF32

    @property
    def name(self) -> str:
        """In a row."""
        parts = [self.precision] + ["no CUDA graph"] * (not self.graph)
        return ", ".join(parts + ["compiled encoder"] * self.compiled)


PRECISIONS = (Variant("float32"), Variant("tf32"), Variant("bfloat16"))
WITHOUT_GRAPH = (Variant("tf32", graph=False), Variant("bfloat16", graph=False))
COMPILED = Variant("bfloat16", compiled=True)


class Sizes(NamedTuple):
    """What is measured."""

    presets: tuple[str, ...] = ("1x", "2x", "3x")
    batches: tuple[int, ...] = (1, 4, 16, 64)
    repeats: int = 15
    variants: tuple[Variant, ...] = PRECISIONS
    minibatches: tuple[str, ...] = ("1x", "2x")
    """At these sizes chunks of several environments are trained on together, too."""
    compiled: tuple[str, ...] = ("1x",)
    """At these sizes a compiled encoder is measured in the end, as far as there is time."""


SHORT = Sizes(("nano",), (1, 4), 2, (Variant("float32"), Variant("bfloat16")), (), ())


def acting(setting: Setting) -> Iterator[Row]:
    """Milliseconds per step of a rollout, and what new weights cost."""
    sizes = SHORT if setting.short else Sizes()
    variants = sizes.variants + (WITHOUT_GRAPH if setting.device == "cuda" else ())
    policy_class = import_vpt_policy()

    def rows(preset: str, batches: tuple[int, ...], variants: tuple[Variant, ...]) -> Iterator[Row]:
        policy, network = make_both(_config(preset), policy_class, setting.device)
        for batch in batches:
            for variant in variants:
                yield _step_row(preset, variant, batch, policy, network, sizes.repeats)
        yield _new_weights_row(preset, network, batches[-1])

    for preset in sizes.presets:
        yield from _within_memory(f"{preset} acting", rows(preset, sizes.batches, variants))
    for preset in sizes.compiled:
        yield from _within_memory(f"{preset} acting", rows(preset, (16,), (COMPILED,)))


def training(setting: Setting) -> Iterator[Row]:
    """Milliseconds for chunks of one environment, and of several, used twice (see `vpt.py`)."""
    sizes = SHORT if setting.short else Sizes()
    policy_class = import_vpt_policy()

    def rows(preset: str, variants: tuple[Variant, ...], envs: int = 1) -> Iterator[Row]:
        policy, network = make_both(_config(preset), policy_class, setting.device)
        for variant in variants:
            repeats = sizes.repeats if envs == 1 else sizes.repeats // 2 + 1
            yield _update_row(preset, variant, envs, policy, network, repeats)

    for preset in sizes.presets:
        yield from _within_memory(f"{preset} training", rows(preset, sizes.variants))
    for preset in sizes.minibatches:
        several = rows(preset, sizes.variants, ENVS_PER_MINIBATCH)
        yield from _within_memory(f"{preset} training", several)
    for preset in sizes.compiled:
        yield from _within_memory(f"{preset} training", rows(preset, (COMPILED,)))


def _within_memory(what: str, rows: Iterator[Row]) -> Iterator[Row]:
    """Rows until the device's memory is full, which is no reason to leave other sizes out."""
    try:
        yield from rows
    except torch.OutOfMemoryError:
        yield Row(f"{what}, the rest", "out of memory")
    torch.cuda.empty_cache()


# ---------------------------------------------------------------------------- rows


def _step_row(
    preset: str, variant: Variant, batch: int, policy: Any, network: VPTNetwork, repeats: int
) -> Row:
    ours = _with_variant(network, variant)
    device = network.net.final_ln.weight.device.type
    image = images(network.config, batch, 1, device)
    make = our_step if variant.graph else _step_without_graph
    step = make(ours, image[:, 0], batch)
    step()
    times = time_alternately(
        theirs=policy and partial(_in, variant.theirs, their_step(policy, image, batch)),
        ours=step,
        repeats=repeats,
    )
    return _row(
        f"{preset} acting, batch {batch}, {variant.name}", times, preset, variant, variant.graph
    )


def _update_row(
    preset: str, variant: Variant, envs: int, policy: Any, network: VPTNetwork, repeats: int
) -> Row:
    ours, prior = _with_variant(network, variant), _with_variant(network, variant)
    chunk = Chunk(network.config, network.net.final_ln.weight.device.type, envs)
    kept = prior_latent(prior, chunk)
    update = partial(our_update, ours, prior, chunk)
    times = time_alternately(
        theirs=policy and partial(_in, variant.theirs, their_update(policy, chunk)),
        first=partial(_in, variant.precision, partial(update, None)),
        again=partial(_in, variant.precision, partial(update, kept)),
        repeats=repeats,
    )
    times["ours"] = (times["first"] + times["again"]) / 2
    frames = f"{envs} x {CHUNK} frames" if envs > 1 else f"{CHUNK} frames"
    return _row(f"{preset} training, {frames}, {variant.name}", times, preset, variant, judged=True)


def _new_weights_row(preset: str, network: VPTNetwork, batch: int) -> Row:
    """How long acting stops when new weights have come: laid out anew, recorded anew."""
    session = InferenceSession(network, batch)
    image = images(network.config, batch, 1, network.net.final_ln.weight.device.type)[:, 0]
    first = torch.zeros(batch, dtype=torch.bool, device=image.device)
    seconds = []
    for _ in range(LAYOUTS):
        with torch.no_grad():
            network.net.final_ln.weight.mul_(1.0)
        started = time.perf_counter()
        session.act(image, first).value_b.cpu()
        with_layout = time.perf_counter()
        session.act(image, first).value_b.cpu()
        seconds.append((with_layout - started) - (time.perf_counter() - with_layout))
    return Row(f"{preset} acting, batch {batch}, after new weights", 1e3 * min(seconds), "ms")


def _row(what: str, times: dict[str, float], preset: str, variant: Variant, judged: bool) -> Row:
    milliseconds = {name: 1e3 * seconds for name, seconds in times.items()}
    ours, theirs = milliseconds["ours"], milliseconds.get("theirs")
    if theirs is None:
        return Row(what, ours, "ms")
    is_judged = judged and preset in JUDGED
    return Row(
        what,
        ours,
        "ms",
        beside=theirs,
        whose=f"VPTPolicy, {variant.theirs}",
        goal=f"{GOAL:g} times as fast" if is_judged else "",
        met=theirs >= GOAL * ours if is_judged else None,
    )


# ---------------------------------------------------------------------------- inside


def _config(preset: str) -> VPTConfig:
    """MineStudio has joint heads only."""
    return VPTConfig.from_options({"preset": preset, "action_head": "joint"})


def _with_variant(network: VPTNetwork, variant: Variant) -> VPTNetwork:
    """A network that shares the weights; joint heads have nothing that is not among them."""
    options = {"precision": variant.precision, "compile": variant.compiled}
    with torch.device("meta"):
        other = VPTNetwork(dataclasses.replace(network.config, **options))
    other.load_state_dict(network.state_dict(keep_vars=True), assign=True)
    return other


def _step_without_graph(network: VPTNetwork, image: Tensor, batch: int) -> Callable[[], None]:
    """A graph is of all environments in order; told which they are, a session does without."""
    session = InferenceSession(network, batch)
    first = torch.zeros(batch, dtype=torch.bool, device=image.device)
    rows = torch.arange(batch, device=image.device)

    def step() -> None:
        session.act(image, first, rows=rows).value_b.cpu()

    return step


def _in(precision: str, call: Callable[[], None]) -> None:
    """Backward passes are outside of what the network decides about itself."""
    set_arithmetic(precision)
    try:
        call()
    finally:
        torch.backends.cudnn.allow_tf32 = True  # torch's defaults
        torch.set_float32_matmul_precision("highest")
