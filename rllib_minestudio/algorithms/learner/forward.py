"""Running the network over recorded rows, chunk by chunk."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.core.columns import Columns
from torch import Tensor

from rllib_minestudio.algorithms.learner.batch import FragmentBatch, Tensors
from rllib_minestudio.algorithms.learner.targets import Evaluation
from rllib_minestudio.models.vpt import heads
from rllib_minestudio.models.vpt_rl_module import FIRST, LOGITS, VPTRLModule


def forward(module: Any, image: Tensor, first: Tensor, state: Tensors) -> dict[str, Any]:
    """One chunk through `forward_train`.

    Args:
        module: A `VPTRLModule`, or its distributed wrapper.
        image: (B, T, H, W, 3) uint8.
        first: (B, T) bool.
        state: Memory before the chunk, leading axis B.
    """
    return module.forward_train(
        {Columns.OBS: {"image": image}, FIRST: first, Columns.STATE_IN: state}
    )


@torch.no_grad()
def evaluate(
    module: VPTRLModule,
    batch: FragmentBatch,
    last_image: Tensor,
    last_first: Tensor,
    *,
    context_length: int,
    batch_size: int,
) -> Evaluation:
    """Log-probabilities and values of recorded steps under the module's weights.

    Args:
        module: Not its distributed wrapper: nothing is to be synchronised.
        batch: B rows.
        last_image: (B, H, W, 3), what was seen after the last step.
        last_first: (B,) bool, whether that began an episode.
        context_length: Steps per forward pass.
        batch_size: Rows per forward pass, at most; bounds the memory.
    """
    rows = torch.arange(len(batch), device=last_image.device)
    parts = [
        _evaluate_together(
            module, batch.select(some), last_image[some], last_first[some], context_length
        )
        for some in rows.split(batch_size)
    ]
    return Evaluation(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)))


def _evaluate_together(
    module: VPTRLModule,
    batch: FragmentBatch,
    last_image: Tensor,
    last_first: Tensor,
    context_length: int,
) -> Evaluation:
    state = batch.state_in
    logp, value = [], []
    for chunk in batch.chunks(context_length):
        out = forward(module, chunk.image, chunk.first, state)
        action = {name: tokens.unsqueeze(-1) for name, tokens in chunk.action.items()}
        logp.append(heads.log_prob(out[LOGITS], action))
        value.append(out[Columns.VF_PREDS])
        state = out[Columns.STATE_OUT]
    last = forward(module, last_image[:, None], last_first[:, None], state)
    return Evaluation(torch.cat(logp, dim=1), torch.cat(value, dim=1), last[Columns.VF_PREDS][:, 0])
