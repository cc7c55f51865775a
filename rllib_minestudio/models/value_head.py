"""The value head: a linear prediction in normalised space, and the running statistics behind it.

Returns differ between tasks by orders of magnitude. The head therefore learns
`(return - mean) / std`, with exponentially weighted statistics of the returns seen so far.
Source: MineStudio, utils/vpt_lib/scaled_mse_head.py and normalize_ewma.py.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

DECAY = 0.99999
"""Weight of the old statistics at each update."""

MIN_DEBIAS = 1e-5
MIN_VARIANCE = 1e-2


class RunningStatistics(nn.Module):
    """Exponentially weighted mean and mean square, debiased for their start at zero.

    With d the debiasing term (the total weight of the data so far)::

        mean = running_mean / max(d, 1e-5)
        var  = max(running_mean_sq / max(d, 1e-5) - mean^2, 0.01)
    """

    def __init__(self) -> None:
        """Start without data: mean 0, variance 0.01."""
        super().__init__()
        self.running_mean: Tensor
        self.running_mean_sq: Tensor
        self.debiasing_term: Tensor
        self.register_buffer("running_mean", torch.zeros(1))
        self.register_buffer("running_mean_sq", torch.zeros(1))
        self.register_buffer("debiasing_term", torch.tensor(0.0))

    def mean_and_std(self) -> tuple[Tensor, Tensor]:
        """Return the debiased mean and standard deviation, [1] each."""
        weight = self.debiasing_term.clamp(min=MIN_DEBIAS)
        mean = self.running_mean / weight
        variance = (self.running_mean_sq / weight - mean**2).clamp(min=MIN_VARIANCE)
        return mean, variance.sqrt()

    @torch.no_grad()
    def update(self, mean: Tensor, mean_sq: Tensor, *, times: int = 1) -> None:
        """Add one batch, given by its moments.

        Passing moments rather than data lets several learners average theirs first.

        Args:
            mean: The batch's mean, a scalar.
            mean_sq: The batch's mean square, a scalar.
            times: The number of batches that it counts as.
        """
        decay = DECAY**times
        for buffer, moment in (
            (self.running_mean, mean),
            (self.running_mean_sq, mean_sq),
            (self.debiasing_term, 1.0),
        ):
            buffer.copy_(buffer * decay + moment * (1.0 - decay))


class ValueHead(nn.Module):
    """Predicts normalised values, and converts between them and the task's own units."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)
        self.normalizer = RunningStatistics()

    def forward(self, latent_bte: Tensor) -> Tensor:
        """[B, T, E] -> [B, T] normalised values in float32."""
        return self.linear(latent_bte).squeeze(-1).float()

    def normalize(self, value: Tensor) -> Tensor:
        """Convert from the task's units to normalised ones; any shape."""
        mean, std = self.normalizer.mean_and_std()
        return (value - mean) / std

    def denormalize(self, value: Tensor) -> Tensor:
        """Convert from normalised units to the task's; any shape."""
        mean, std = self.normalizer.mean_and_std()
        return value * std + mean

    @torch.no_grad()
    def reset_to_zero(self) -> None:
        """Zero weights, bias and statistics: a new task's values start at 0 everywhere."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.zero_()
