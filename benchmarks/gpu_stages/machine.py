"""The machine: its device, its processor, and the versions of what runs on them."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import torch

from gpu_stages.processes import BENCHMARKS, NO_DEVICE
from gpu_stages.rows import Row, Setting
from rllib_minestudio.checkpoints.record import code_identity, versions

OTHERS = ("numba", "minestudio")


def measure(_: Setting) -> Iterator[Row]:
    """Rows of text, the device's first: the other stages depend on it."""
    if torch.cuda.is_available():
        yield from _device()
    else:
        yield Row("CUDA device", NO_DEVICE)
    yield Row("date", datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"))
    yield Row("processor", f"{_processor()}, {len(os.sched_getaffinity(0))} cores for us")
    yield Row("memory", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, "GiB")
    code = code_identity(BENCHMARKS.parent)
    if code:
        yield Row("commit", code["commit"] + (", modified" if code["modified"] else ""))
    for name, version in {**versions(), **dict(map(_version, OTHERS))}.items():
        yield Row(name, version)


def _device() -> Iterator[Row]:
    properties = torch.cuda.get_device_properties(0)
    torch.ones(64, 64, device="cuda").sum().item()
    yield Row("CUDA device", properties.name)
    yield Row("CUDA devices", torch.cuda.device_count())
    yield Row("device memory", properties.total_memory / 2**30, "GiB")
    yield Row("compute capability", f"{properties.major}.{properties.minor}")
    yield Row("CUDA", str(torch.version.cuda))
    yield Row("cuDNN", str(torch.backends.cudnn.version()))
    if torch.distributed.is_nccl_available():
        yield Row("NCCL", ".".join(map(str, torch.cuda.nccl.version())))
    yield Row("bfloat16", "yes" if torch.cuda.is_bf16_supported() else "no")


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(name: str) -> tuple[str, str]:
    try:
        return name, metadata.version(name)
    except metadata.PackageNotFoundError:
        return name, "not installed"
