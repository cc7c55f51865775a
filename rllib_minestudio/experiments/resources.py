"""Checks that the resources a trial requests exist, since Ray would wait for them forever.

Each process of a trial requests a bundle of CPUs and GPUs, and Ray starts them together once every
bundle has a node. If a bundle fits no node, the trial stays pending silently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

Bundle = Mapping[str, float]

SLACK = 1e-6
"""Tolerance, since fractions of GPUs do not always add up to whole ones."""


def machine_gpus() -> int:
    """Return how many GPUs this process may use."""
    import torch

    return torch.cuda.device_count()


def unplaced(bundles: Sequence[Bundle], nodes: Sequence[Bundle]) -> list[Bundle]:
    """Place bundles on nodes, the largest first, and return those that do not fit.

    Args:
        bundles: Resource -> amount, one mapping per process.
        nodes: Resource -> free amount, one mapping per machine.
    """
    free = [dict(node) for node in nodes]
    left = []
    for bundle in sorted(bundles, key=lambda b: (b.get("GPU", 0), b.get("CPU", 0)), reverse=True):
        node = next((node for node in free if _fits(bundle, node)), None)
        if node is None:
            left.append(bundle)
            continue
        for name, amount in bundle.items():
            node[name] = node.get(name, 0) - amount
    return left


def _fits(bundle: Bundle, node: Bundle) -> bool:
    return all(amount <= node.get(name, 0) + SLACK for name, amount in bundle.items())


def resource_problems(
    config: AlgorithmConfig, bundles: Sequence[Bundle], nodes: Sequence[Bundle], where: str
) -> list[str]:
    """Return one sentence per kind of resource that a trial requests but cannot get.

    Args:
        config: The trial's AlgorithmConfig, whose options the sentences name.
        bundles: The request (`Algorithm.default_resource_request(...).bundles`).
        nodes: Resource -> amount, one mapping per machine.
        where: What the nodes are, for messages, such as "this machine".
    """
    left = unplaced(bundles, nodes)
    problems = []
    for name in sorted({name for bundle in left for name in bundle}):
        asked, there = _total(bundles, name), _total(nodes, name)
        largest = max(node.get(name, 0) for node in nodes)
        biggest = max(bundle.get(name, 0) for bundle in bundles)
        if asked > there + SLACK:
            problem = f"{asked:g} {name}s are asked for, and {where} has {there:g}"
        elif biggest > largest + SLACK:
            problem = f"one process asks for {biggest:g} {name}s, and no node has over {largest:g}"
        else:
            continue
        problems.append(f"{problem}. {_options(config, name)}")
    if left and not problems:
        problems.append(
            f"the {len(bundles)} processes do not fit on the nodes of {where} side by side: "
            f"{_as_text(left[0])} finds no room. {_options(config, 'CPU')}"
        )
    return problems


def _total(bundles: Sequence[Bundle], name: str) -> float:
    return sum(bundle.get(name, 0) for bundle in bundles)


def _as_text(bundle: Bundle) -> str:
    return " + ".join(f"{amount:g} {name}" for name, amount in bundle.items())


def _options(config: AlgorithmConfig, name: str) -> str:
    """Return the options that request a resource, with their values, and the way out."""
    if name not in ("CPU", "GPU"):
        return f"It is asked for by custom_resources_per_env_runner; start nodes with {name}."
    kind = name.lower()
    names = [
        "num_learners",
        f"num_{kind}s_per_learner",
        "num_env_runners",
        f"num_{kind}s_per_env_runner",
        "evaluation_num_env_runners",
    ]
    if kind == "cpu":
        names.append("num_cpus_for_main_process")
    given = ", ".join(f"{option}={getattr(config, option)}" for option in names)
    return f"Lower one of {given}, or use a machine or cluster (--address) that has them."
