"""`import rllib_minestudio` makes the names known to Tune, whichever is imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest

OURS_FIRST = """
import rllib_minestudio, sys
assert "ray" not in sys.modules and "torch" not in sys.modules
from ray.tune.registry import get_trainable_cls
"""
RAY_FIRST = """
from ray.tune.registry import get_trainable_cls
import rllib_minestudio, sys
"""
LOOK_UP = """
assert "torch" not in sys.modules
from ray.tune.registry import ENV_CREATOR, _global_registry
assert _global_registry.contains(ENV_CREATOR, "MineStudio")
assert "torch" not in sys.modules and "numba" not in sys.modules
for name in ("MineStudioPPO", "MineStudioBC"):
    found = get_trainable_cls(name)
    assert found.__name__ == name and found is getattr(sys.modules[found.__module__], name)
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", [OURS_FIRST, RAY_FIRST], ids=["ours_first", "ray_first"])
def test_the_order_of_imports_does_not_matter(order):
    subprocess.run([sys.executable, "-c", order + LOOK_UP], check=True, timeout=300)


def test_a_session_of_ray_knows_them_too(local_ray):
    import ray
    from ray.tune.registry import get_trainable_cls

    from rllib_minestudio import MineStudioPPO

    @ray.remote(num_cpus=0)
    def look_up():
        return get_trainable_cls("MineStudioPPO")

    assert get_trainable_cls("MineStudioPPO") is MineStudioPPO
    assert ray.get(look_up.remote()) is MineStudioPPO
