"""Training passes and rollout steps as CUDA graphs.

A forward and backward pass over a few fragments is hundreds of kernels, whose launches take longer
than their work. Consecutive passes of one shape are therefore captured, and replayed from then on,
wherever that gives the same results as eager execution. So is a session's step of acting in all
its environments.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call

from rllib_minestudio.models.vpt.attention import RingMemory

_logger = logging.getLogger(__name__)

# ---------------------------------------------------------------------------- training

PATIENCE = 3
"""The number of consecutive passes of one kind that run eagerly before the next is captured."""

Tensors = tuple[Tensor, ...]
Compute = Callable[..., Tensors]


class TrainingGraph:
    """Captures a module's training passes as CUDA graphs, and replays them.

    One kind of pass is captured at a time. Its activations stay allocated, which takes as much
    memory as a pass needs at its peak. Everything else runs eagerly: passes without gradients, with
    inputs that require gradients, of another shape, with hooks on a module, or begun before the
    backward pass of the last replay, which still needs its activations. So do all passes of several
    learners, whose gradient exchange has not been tested together with replays.
    """

    def __init__(self) -> None:
        self._kind: tuple[Any, ...] = ()
        self._repeats = 0
        self._recorded: _RecordedPass | None = None
        self._is_possible = True

    def __reduce__(self) -> tuple[type[TrainingGraph], tuple[()]]:
        """Make a copied module capture its own passes."""
        return TrainingGraph, ()

    def run(self, module: nn.Module, compute: Compute, inputs: Tensors) -> Tensors:
        """Run a pass, eagerly or as a replay.

        Args:
            module: Holds all parameters that `compute` reads.
            compute: Maps inputs to outputs, and depends on inputs and parameters alone.
            inputs: On a GPU.

        Raises:
            RuntimeError: From a second `backward` through a replay's outputs (`retain_graph`) after
                another pass has been replayed.
        """
        parameters = list(module.parameters())
        if not self._is_possible or not _is_replayable(module, parameters, inputs):
            return compute(*inputs)
        kind = _kind_of(parameters, inputs)
        self._repeats = self._repeats + 1 if kind == self._kind else 0
        self._kind = kind
        recorded = self._recorded
        if recorded is not None and recorded.kind == kind:
            return compute(*inputs) if recorded.is_awaited else recorded.replay(inputs)
        if self._repeats < PATIENCE:
            return compute(*inputs)
        self._recorded = None  # free its memory first
        try:
            self._recorded = _RecordedPass(kind, module, compute, inputs)
        except RuntimeError as error:  # mostly out of memory
            self._is_possible = False
            reason = str(error).partition("\n")[0]
            _logger.warning(
                "Training passes run eagerly, since capturing a CUDA graph failed: %s", reason
            )
            return compute(*inputs)
        return self._recorded.replay(inputs)


class _Awaited:
    """Lives as long as a replay's gradients may be requested."""

    is_over = False


class _RecordedPass:
    """A pass and its gradients, as two graphs with inputs and outputs at fixed addresses."""

    def __init__(
        self, kind: tuple[Any, ...], module: nn.Module, compute: Compute, inputs: Tensors
    ) -> None:
        self.kind = kind
        # Kept alive, so that no other tensors can reuse their addresses.
        self._parameters = list(module.parameters())
        self._learning = [parameter for parameter in self._parameters if parameter.requires_grad]
        self._awaited: weakref.ref[_Awaited] | None = None
        self.replays = 0
        with torch.inference_mode(False), torch.enable_grad():
            self._inputs = tuple(map(torch.clone, inputs))
            aliases = _aliases(module)
            learning = [alias for alias in aliases.values() if alias.requires_grad]
            computing = _Computing(module, compute)
            self._forward, self._backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            # Other threads of a learner copy minibatches meanwhile.
            with torch.cuda.graph(self._forward, capture_error_mode="thread_local"):
                outputs = functional_call(computing, aliases, self._inputs)
            with_gradients = [output for output in outputs if output.requires_grad]
            self._doutputs = [torch.zeros_like(output) for output in with_gradients]
            with torch.cuda.graph(
                self._backward, pool=self._forward.pool(), capture_error_mode="thread_local"
            ):
                self._gradients = torch.autograd.grad(
                    with_gradients, learning, self._doutputs, allow_unused=True
                )
        self._has_gradient = [output.requires_grad for output in outputs]
        self._outputs = [output.detach() for output in outputs]

    def versions(self) -> list[int]:
        """How often each parameter has been written in place."""
        return [parameter._version for parameter in self._parameters]

    @property
    def is_awaited(self) -> bool:
        """Whether the last replay's gradients may still be requested."""
        awaited = None if self._awaited is None else self._awaited()
        return awaited is not None and not awaited.is_over

    def replay(self, inputs: Tensors) -> Tensors:
        """Return the outputs for these inputs; gradients flow from them to the parameters."""
        for place, value in zip(self._inputs, inputs, strict=True):
            place.copy_(value)
        self._forward.replay()
        self.replays += 1
        awaited = _Awaited()
        self._awaited = weakref.ref(awaited)
        outputs: Tensors = _Replay.apply(self, awaited, *self._learning)
        return outputs

    def outputs(self) -> tuple[Tensors, Tensors]:
        """Return copies of the last replay's outputs, and those copies that have no gradient."""
        copies = tuple(map(torch.clone, self._outputs))
        pairs = zip(copies, self._has_gradient, strict=True)
        return copies, tuple(copy for copy, has_gradient in pairs if not has_gradient)

    def gradients(self, doutputs: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return copies of the parameters' gradients, given those of the outputs."""
        given = [d for d, has in zip(doutputs, self._has_gradient, strict=True) if has]
        for place, value in zip(self._doutputs, given, strict=True):
            if value is None:
                place.zero_()
            else:
                place.copy_(value)
        self._backward.replay()
        known = [gradient for gradient in self._gradients if gradient is not None]
        copies = list(map(torch.empty_like, known))
        torch._foreach_copy_(copies, known)
        rest = iter(copies)
        return [None if gradient is None else next(rest) for gradient in self._gradients]


class _Computing(nn.Module):
    """A computation with a module's parameters, as `functional_call` needs it."""

    def __init__(self, module: nn.Module, compute: Compute) -> None:
        super().__init__()
        self.module = module
        self._compute = compute

    def forward(self, *inputs: Tensor) -> Tensors:
        return self._compute(*inputs)


def _aliases(module: nn.Module) -> dict[str, Tensor]:
    """Return a new leaf for each parameter of a `_Computing`, sharing the parameter's memory.

    Autograd keeps one node per leaf to accumulate its gradient. That node remembers the stream it
    was created on, and lives as long as the outputs of any earlier pass. A capture uses another
    stream, and autograd would synchronize the two, which CUDA forbids during a capture.
    """
    return {
        f"module.{name}": parameter.detach().requires_grad_(parameter.requires_grad)
        for name, parameter in module.named_parameters()
    }


class _Replay(torch.autograd.Function):
    """Connects a replayed forward pass with the replay of its backward pass."""

    @staticmethod
    def forward(ctx: Any, recorded: _RecordedPass, awaited: _Awaited, *_: Tensor) -> Tensors:
        ctx.set_materialize_grads(False)
        ctx.recorded, ctx.awaited, ctx.number = recorded, awaited, recorded.replays
        ctx.versions = recorded.versions()
        outputs, without_gradient = recorded.outputs()
        ctx.mark_non_differentiable(*without_gradient)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *doutputs: Tensor | None) -> tuple[Tensor | None, ...]:
        if ctx.number != ctx.recorded.replays:
            raise RuntimeError(
                "backward() was called a second time on a training pass after another pass had "
                "run: on a GPU, activations are kept only until the next pass. Call it before, or "
                "once on the sum of the losses."
            )
        if ctx.versions != ctx.recorded.versions():
            raise RuntimeError(
                "Parameters were modified by an inplace operation between a training pass and its "
                "backward(), which needs them unchanged."
            )
        gradients = ctx.recorded.gradients(doutputs)
        ctx.awaited.is_over = True
        return None, None, *gradients


def _is_replayable(module: nn.Module, parameters: Sequence[Tensor], inputs: Tensors) -> bool:
    """Whether gradients are computed for parameters alone, and nothing observes the pass inside."""
    return (
        torch.is_grad_enabled()
        and any(parameter.requires_grad for parameter in parameters)
        and all(each.numel() for each in inputs)
        and not any(each.requires_grad for each in inputs)
        and not torch.is_autocast_enabled("cuda")
        and not torch.compiler.is_compiling()
        and not torch.cuda.is_current_stream_capturing()
        and not _has_peers()
        and not any(map(_has_hooks, module.modules()))
    )


def _has_peers() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _has_hooks(module: nn.Module) -> bool:
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )


def _kind_of(parameters: Sequence[Tensor], inputs: Tensors) -> tuple[Any, ...]:
    """Everything that a captured graph relies on."""
    return (
        [(each.shape, each.dtype, each.device) for each in inputs],
        [(parameter.data_ptr(), parameter.requires_grad) for parameter in parameters],
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.allow_tf32,
        torch.are_deterministic_algorithms_enabled(),
    )


# ---------------------------------------------------------------------------- acting

WARMUP_STEPS = 3
"""Runs before the capture, in which cuDNN and cuBLAS choose their algorithms and workspaces."""

Outputs = tuple[dict[str, Tensor], Tensor]


class GraphedStep:
    """Replays `step` for all environments; its inputs and outputs stay at fixed addresses."""

    def __init__(
        self,
        step: Callable[[Tensor, Tensor], Outputs],
        memory: RingMemory,
        image_shape: tuple[int, int, int],
    ) -> None:
        """Capture the graph without changing `memory`.

        Args:
            step: Takes images [N, H, W, 3] and firsts [N]; reads and writes `memory` in place.
            memory: Restored after the warm-up.
            image_shape: (H, W, 3).
        """
        num_envs, device = len(memory.slot_n), memory.slot_n.device
        self._image = torch.zeros((num_envs, *image_shape), dtype=torch.uint8, device=device)
        self._first = torch.zeros(num_envs, dtype=torch.bool, device=device)
        before = memory.snapshot()
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(WARMUP_STEPS):
                step(self._image, self._first)
        torch.cuda.current_stream(device).wait_stream(stream)
        memory.restore(before)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._outputs = step(self._image, self._first)

    def __call__(self, image_nhwc: Tensor, first_n: Tensor) -> Outputs:
        """Run the step; the outputs are overwritten by the next call."""
        self._image.copy_(image_nhwc)
        self._first.copy_(first_n)
        self._graph.replay()
        return self._outputs
