"""What tests of several parts share: a local Ray, a device; a core for each pytest-xdist worker."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    # The workers share the cores. Set before torch and numba are imported, and for child processes.
    for _variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(_variable, "1")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is marked `gpu` where there is none."""
    if item.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The processor, and a CUDA device that computes in full float32."""
    import torch

    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    return request.param


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """Ray on this machine only, for all tests of a session."""
    import ray  # most tests do without

    ray.init(
        address="local",  # whatever else runs on this machine
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=200 * 1024**2,
        _node_ip_address="127.0.0.1",
    )
    yield
    ray.shutdown()
