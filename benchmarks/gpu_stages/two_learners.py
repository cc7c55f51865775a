"""Can two learners share one device? With nccl, which RLlib takes for learners on GPUs, and gloo.

What learners exchange is done here by their own parts: gradients by DistributedDataParallel, sums
by `Peers`. Without a device the two are on the processor, with gloo.
"""

from __future__ import annotations

import multiprocessing
import queue
import time
import traceback
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gpu_stages.rows import Row, Setting
from rllib_minestudio.algorithms.learner.gradient_step import Peers
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork

LEARNERS = 2
RESERVE_S = 2.0
"""Of the stage's time, to tell of learners that hang."""


class Answer(NamedTuple):
    """What a learner has to say.

    Attributes:
        backend: Which it tried.
        norm: Of the gradient that it was left with, averaged over the learners.
        milliseconds: For a step of both, the second time.
        error: Why there is none; empty otherwise.
    """

    backend: str
    norm: float = 0.0
    milliseconds: float = 0.0
    error: str = ""


def measure(setting: Setting) -> Iterator[Row]:
    """For each backend whether it is possible; all are tried at once."""
    backends = ("nccl", "gloo") if setting.device == "cuda" else ("gloo",)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    learners = [
        context.Process(
            target=_learn,
            args=(backend, rank, setting.device, str(setting.folder / f"{backend}.store"), answers),
            daemon=True,
        )
        for backend in backends
        for rank in range(LEARNERS)
    ]
    for backend in backends:
        (setting.folder / f"{backend}.store").unlink(missing_ok=True)
    for learner in learners:
        learner.start()
    heard: dict[str, list[Answer]] = {backend: [] for backend in backends}
    while sum(map(len, heard.values())) < len(learners):
        try:
            answer = answers.get(timeout=max(0.1, setting.ends_at - RESERVE_S - time.monotonic()))
        except queue.Empty:
            break
        heard[answer.backend].append(answer)
    for backend, of_backend in heard.items():
        yield from _rows(backend, setting.device, of_backend)
    for learner in learners:
        learner.kill()


def _rows(backend: str, device: str, answers: list[Answer]) -> Iterator[Row]:
    what = f"two learners on one {device}, {backend}"
    errors = [answer.error for answer in answers if answer.error]
    if errors:
        yield Row(what, f"not possible: {errors[0]}")
    elif len(answers) < LEARNERS:
        yield Row(what, "not possible: no answer")
    else:
        yield Row(what, "possible")
        yield Row(f"{what}: a step", max(a.milliseconds for a in answers), "ms")
        first, second = (answer.norm for answer in answers)
        yield Row(
            f"{what}: difference of their gradients",
            abs(first - second) / first,
            goal="0",
            met=first == second,
        )


def _learn(backend: str, rank: int, device: str, store: str, answers: Any) -> None:
    """One learner; frames differ between the two, gradients must not."""
    try:
        answers.put(_steps(backend, rank, device, store))
    except Exception as error:
        traceback.print_exc()
        lines = [line for line in str(error).splitlines() if line.strip()]
        answers.put(Answer(backend, error=lines[-1] if lines else type(error).__name__))


def _steps(backend: str, rank: int, device: str, store: str) -> Answer:
    torch.set_num_threads(1)
    dist.init_process_group(
        backend,
        init_method=f"file://{store}",
        rank=rank,
        world_size=LEARNERS,
        timeout=timedelta(seconds=20),
    )
    torch.manual_seed(0)
    network = VPTNetwork(VPTConfig.from_options({"preset": "nano"})).to(device)
    peers = Peers(LEARNERS, device)
    wrapped = DistributedDataParallel(network)
    torch.manual_seed(rank)
    image = torch.randint(0, 256, (2, 4, *network.config.img_shape), dtype=torch.uint8)
    first = torch.zeros(2, 4, dtype=torch.bool, device=device)
    seconds = 0.0
    for _ in range(2):
        network.zero_grad()
        started = time.perf_counter()
        out = wrapped(image.to(device), first, network.initial_state(2))
        (out.value_bt.mean() + sum(logits.mean() for logits in out.logits.values())).backward()
        assert peers.total(torch.ones(1)).item() == LEARNERS
        seconds = time.perf_counter() - started
    gradients = [p.grad.flatten() for p in network.parameters() if p.grad is not None]
    return Answer(backend, torch.cat(gradients).norm().item(), 1e3 * seconds)
