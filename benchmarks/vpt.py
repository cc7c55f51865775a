"""Speed of the VPT network against MineStudio's `VPTPolicy`, paired in one process.

    python benchmarks/vpt.py rollout --sizes 1x 2x --batches 1 4 8 16
    python benchmarks/vpt.py forward --sizes 1x
    python benchmarks/vpt.py train --sizes 1x
    python benchmarks/vpt.py kernels --sizes nano

Where MineStudio is importable (docs/vpt.md says how to install it), both play with the same
weights and alternate call by call, so that other load on the machine hits both; elsewhere only
this package is measured. Times are medians; the ratio is MineStudio's over ours.

`rollout` is what a step of acting costs: collecting the environments' states, forward pass,
sampling, denormalised value, handing the states back. `forward` is the network's part of it, from
images to logits and value, with states that are at hand. `train` is what a chunk of 64 frames of
one environment costs: MineStudio passes over it for old values, for the policy and for the
reference; here old values come with the fragment, and the reference's outputs are kept for the
second use. `kernels` compares this package with itself: stacks of few channels by torch, as they
were before there were kernels for them, and by the kernels; acting with 32 environments, and an
update of 2,048 frames, which also is compared with torch listing the joint actions ("all").
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sys
from functools import partial
from typing import Any

import torch
import vpt_kernels
from vpt_calls import (
    CHUNK,
    Chunk,
    images,
    import_vpt_policy,
    make_both,
    our_forward,
    our_step,
    our_update,
    prior_latent,
    their_forward,
    their_step,
    their_update,
    time_alternately,
)

from rllib_minestudio.models.vpt import VPTConfig

ROLLOUT_THRESHOLDS = {
    ("float32", 1): 1.25,
    ("float32", 4): 1.25,
    ("float32", 8): 1.1,
    ("float32", 16): 1.1,
    ("bfloat16", 1): 2.2,
    ("bfloat16", 4): 2.2,
    ("bfloat16", 8): 2.2,
    ("bfloat16", 16): 2.2,
}
"""Least ratios on two CPU cores, for 1x and 2x."""

TRAIN_THRESHOLDS = {"float32": 1.6, "bfloat16": 3.0}

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**36)}
"""glibc would give memory back after every chunk; page faults would then be half of the time."""


def main() -> None:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["rollout", "forward", "train", "kernels"])
    parser.add_argument("--sizes", nargs="+", default=["nano", "1x", "2x"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 4, 8, 16])
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    _pin_allocator()
    torch.set_num_threads(arguments.threads)
    policy_class = import_vpt_policy()
    _describe(arguments, policy_class)
    measure = {"train": _training, "kernels": _kernels}.get(arguments.what, _acting)
    for size in arguments.sizes:
        measure(size, policy_class, arguments)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\npeak memory of the process: {peak:.1f} GiB")


def _pin_allocator() -> None:
    """Starts over with the allocator set; it reads its settings when a process starts."""
    if any(os.environ.get(name) != value for name, value in ALLOCATOR.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})


def _describe(arguments: argparse.Namespace, policy_class: Any) -> None:
    device = platform.processor() or platform.machine()
    if arguments.device == "cuda":
        device = torch.cuda.get_device_name()
    print(
        f"device {device}, torch {torch.__version__}, {arguments.threads} threads, "
        f"MineStudio {'present' if policy_class else 'absent'}"
    )


def _config(size: str, precision: str = "float32", compiled: bool = False) -> VPTConfig:
    """MineStudio has joint heads only."""
    options = {"preset": size, "action_head": "joint", "precision": precision}
    return VPTConfig.from_options({**options, "compile": compiled})


# ---------------------------------------------------------------------------- rollout


def _acting(size: str, policy_class: Any, arguments: argparse.Namespace) -> None:
    is_rollout = arguments.what == "rollout"
    make_theirs, make_ours = (their_step, our_step) if is_rollout else (their_forward, our_forward)
    print(
        f"\n{arguments.what} {size}: ms a call\n"
        f"{'':10}{'batch':>6}{'theirs':>10}{'ours':>10}{'ratio':>7}"
    )
    for batch in arguments.batches:
        for precision in arguments.precisions:
            config = _config(size, precision, arguments.compile)
            policy, network = make_both(config, policy_class, arguments.device)
            image = images(config, batch, 1, arguments.device)
            theirs = policy and make_theirs(policy, image, batch)
            ours = make_ours(network, image[:, 0], batch)
            times = time_alternately(theirs=theirs, ours=ours, repeats=arguments.repeats)
            judged = is_rollout and size in ("1x", "2x")
            least = ROLLOUT_THRESHOLDS.get((precision, batch)) if judged else None
            _print_row(precision, batch, times.get("theirs"), times["ours"], least)


# ---------------------------------------------------------------------------- training


def _training(size: str, policy_class: Any, arguments: argparse.Namespace) -> None:
    print(f"\ntraining {size}: s a chunk of {CHUNK} frames, used twice (reference kept)")
    print(f"{'':10}{'use':>6}{'theirs':>10}{'ours':>10}{'ratio':>7}")
    for precision in arguments.precisions:
        config = _config(size, precision, arguments.compile)
        policy, network = make_both(config, policy_class, arguments.device)
        _, prior = make_both(config, None, arguments.device)
        chunk = Chunk(config, arguments.device)
        theirs = policy and their_update(policy, chunk)
        kept = prior_latent(prior, chunk)
        update = partial(our_update, network, prior, chunk)
        times = time_alternately(
            theirs=theirs,
            first=partial(update, None),
            again=partial(update, kept),
            repeats=arguments.repeats,
        )
        times["mean"] = (times["first"] + times["again"]) / 2
        for use in ("first", "again", "mean"):
            judged = use == "mean" and size in ("1x", "2x")
            least = TRAIN_THRESHOLDS[precision] if judged else None
            _print_row(precision, use, times.get("theirs"), times[use], least, unit=1.0)


# ---------------------------------------------------------------------------- kernels


def _kernels(size: str, policy_class: Any, arguments: argparse.Namespace) -> None:
    print(f"\nkernels {size}: ms an update, and ms of 10 steps of acting")
    print(f"{'':10}{'work':>12}{'torch':>10}{'kernels':>10}{'ratio':>7}")
    for precision in arguments.precisions:
        config = VPTConfig.from_options({"preset": size, "precision": precision})
        for pair in vpt_kernels.pairs(config):
            times = time_alternately(
                torch=pair.by_torch, kernels=pair.by_kernels, repeats=arguments.repeats
            )
            least = vpt_kernels.THRESHOLDS.get(pair.name) if size == "nano" else None
            _print_row(precision, f"{pair.name:>12}", times["torch"], times["kernels"], least)


# ---------------------------------------------------------------------------- printing


def _print_row(
    precision: str,
    label: object,
    theirs: float | None,
    ours: float,
    least: float | None,
    unit: float = 1e3,
) -> None:
    row = f"{precision:10}{label!s:>6}"
    if theirs is None:
        print(f"{row}{'-':>10}{ours * unit:10.2f}", flush=True)
        return
    ratio = theirs / ours
    verdict = "" if least is None else f"  {'ok' if ratio >= least else 'MISSED'} (>= {least})"
    print(f"{row}{theirs * unit:10.2f}{ours * unit:10.2f}{ratio:7.2f}{verdict}", flush=True)


if __name__ == "__main__":
    main()
