"""Imports point downwards only: each layer of docs/architecture.md, and what it must not know."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "rllib_minestudio"
OURS = "rllib_minestudio"

FORBIDDEN = {
    "env/voxel": ["gymnasium", "ray", "torch", f"{OURS}.env", f"{OURS}.models"],
    "env": ["ray", "torch", f"{OURS}.models", f"{OURS}.algorithms"],
    "models/vpt": ["ray", "gymnasium", f"{OURS}.env", f"{OURS}.algorithms"],
    "models/vpt/winograd": ["torch"],
    "models": [f"{OURS}.algorithms", f"{OURS}.evaluation", f"{OURS}.cli"],
    "algorithms/learner/gae.py": ["ray", "torch", f"{OURS}.models"],
    "algorithms/learner/losses.py": ["ray", f"{OURS}.models"],
    "algorithms/training_loop/replay_buffer.py": ["ray", "torch", f"{OURS}.models"],
    "algorithms/env_pool": ["ray", "torch", f"{OURS}.models"],
    "algorithms": [f"{OURS}.evaluation", f"{OURS}.experiments", f"{OURS}.cli"],
    "recordings": [
        *("gymnasium", "ray", "torch"),
        *(f"{OURS}.{layer}" for layer in ("env", "models", "algorithms", "evaluation", "cli")),
    ],
    "demonstrations": [
        *("ray", "torch"),
        *(f"{OURS}.{layer}" for layer in ("models", "algorithms", "evaluation", "cli")),
    ],
    "evaluation": [f"{OURS}.experiments", f"{OURS}.cli"],
    "experiments": [f"{OURS}.cli", f"{OURS}.doctor"],
    "doctor": [f"{OURS}.cli", f"{OURS}.experiments"],
}
ALLOWED = {"env/voxel": f"{OURS}.env.voxel"}


def files(layer):
    path = PACKAGE / layer
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def imports(file):
    """Every module that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def within(module, package):
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("layer", FORBIDDEN)
def test_a_layer_knows_nothing_of_those_above(layer):
    own = ALLOWED.get(layer)
    found = [
        f"{file.relative_to(PACKAGE)} imports {module}"
        for file in files(layer)
        for module in imports(file)
        for package in FORBIDDEN[layer]
        if within(module, package) and not (own and within(module, own))
    ]
    assert files(layer)
    assert not found
