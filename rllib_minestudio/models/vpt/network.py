"""The VPT network: image encoder, transformer with memory, action and value heads.

Shapes at each stage (1x, one environment, chunk of T)::

    image [1, T, 128, 128, 3] -> ImageEncoder [1, T, 1024] -> 4 x TransformerBlock [1, T, 1024]
        -> ReLU -> lastlayer -> final_ln [1, T, 1024] -> heads: 8641, 121 and 1 numbers per frame

Parameter names equal those of MineStudio's `VPTPolicy` and OpenAI's checkpoints:
`net.*`, `pi_head.*`, `value_head.*`.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.linalg import vecdot
from torch.nn import functional as F

from rllib_minestudio.foundation.names import BUTTON_GROUPS, NUM_BUTTONS
from rllib_minestudio.models.acting import BFLOAT16, arithmetic
from rllib_minestudio.models.distributions import (
    ActionDistribution,
    Categorical,
    FactoredCategorical,
    JointCategorical,
)
from rllib_minestudio.models.value_head import ValueHead
from rllib_minestudio.models.vpt.attention import (
    MASKED_LOGIT,
    TransformerBlock,
    VPTState,
    visibility,
)
from rllib_minestudio.models.vpt.config import VPTConfig
from rllib_minestudio.models.vpt.cuda_graphs import Tensors, TrainingGraph
from rllib_minestudio.models.vpt.layers import ImageEncoder, fan_in_linear, normed_linear

_logger = logging.getLogger(__name__)


class VPTOutput(NamedTuple):
    """What one forward pass computes for a chunk of T frames."""

    logits: dict[str, Tensor]
    """`buttons` [B, T, 8641] and `camera` [B, T, 121] normalised log-probabilities, float32."""

    value_bt: Tensor
    """[B, T] value in normalised units, float32; `value_head.denormalize` converts."""

    state: VPTState
    """The memory after the chunk."""


class Recurrence(nn.Module):
    """The transformer blocks, under the name they have in checkpoints."""

    def __init__(self, config: VPTConfig) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            TransformerBlock(config) for _ in range(config.n_recurrence_layers)
        )

    def forward(self, x_bte: Tensor, first_bt: Tensor, state: VPTState) -> tuple[Tensor, VPTState]:
        """Run all blocks; each has its own memory, and all share the mask."""
        visible_btk, mask_bm = visibility(first_bt, state.mask)
        bias_b1tk = torch.zeros_like(visible_btk, dtype=x_bte.dtype)
        bias_b1tk = bias_b1tk.masked_fill_(~visible_btk, MASKED_LOGIT).unsqueeze(1)
        keys, values = [], []
        for layer, block in enumerate(self.blocks):
            x_bte, keys_bme, values_bme = block(
                x_bte, state.keys[:, layer], state.values[:, layer], bias_b1tk
            )
            keys.append(keys_bme)
            values.append(values_bme)
        return x_bte, VPTState(mask_bm, torch.stack(keys, dim=1), torch.stack(values, dim=1))


class Trunk(nn.Module):
    """Everything before the heads."""

    def __init__(self, config: VPTConfig) -> None:
        """Create the trunk; layers are named as MineStudio's `MinecraftPolicy`."""
        super().__init__()
        self.precision = config.precision
        self.img_process = ImageEncoder(config)
        self.recurrent_layer = Recurrence(config)
        self.lastlayer = normed_linear(config.hidsize, config.hidsize)
        self.final_ln = nn.LayerNorm(config.hidsize)
        self._graph = None if config.compile else TrainingGraph()

    def forward(
        self, image_bthwc: Tensor, first_bt: Tensor, state: VPTState
    ) -> tuple[Tensor, VPTState]:
        """Return the heads' latent [B, T, hidsize] and the memory after the chunk; float32."""
        with arithmetic(self.precision, image_bthwc.device):
            if self._graph is None or not image_bthwc.is_cuda:
                return self._compute(image_bthwc, first_bt, state)
            inputs = (image_bthwc, first_bt, *state)
            latent_bte, *after = self._graph.run(self, self._compute_tensors, inputs)
            return latent_bte, VPTState(*after)

    def _compute_tensors(self, image_bthwc: Tensor, first_bt: Tensor, *state: Tensor) -> Tensors:
        latent_bte, after = self._compute(image_bthwc, first_bt, VPTState(*state))
        return latent_bte, *after

    def _compute(
        self, image_bthwc: Tensor, first_bt: Tensor, state: VPTState
    ) -> tuple[Tensor, VPTState]:
        reduced = self.precision == BFLOAT16
        with torch.autocast(image_bthwc.device.type, torch.bfloat16, enabled=reduced):
            x_bte = self.img_process(image_bthwc)
            x_bte, state = self.recurrent_layer(x_bte, first_bt, state)
            x_bte = self.lastlayer(F.relu(x_bte))
        state = VPTState(state.mask, state.keys.float(), state.values.float())
        return self.final_ln(x_bte.float()), state


class VPTNetwork(nn.Module):
    """Policy and value function over chunks of frames, with a memory carried between chunks.

    Feeding frames one by one or in chunks of any length gives the same numbers, wherever
    episodes begin.
    """

    def __init__(self, config: VPTConfig) -> None:
        """Create a randomly initialised network (torch's global generator)."""
        super().__init__()
        self.config = config
        self.net = Trunk(config)
        self.pi_head = make_action_heads(config)
        self.value_head = ValueHead(config.hidsize)
        if config.compile:
            _note_if_slower()
            # Compiles in place, at the first call; the parameters keep their names.
            self.net.img_process.compile()

    def forward(self, image_bthwc: Tensor, first_bt: Tensor, state: VPTState) -> VPTOutput:
        """Compute policy and value of every frame of a chunk.

        Args:
            image_bthwc: [B, T, H, W, 3] uint8.
            first_bt: [B, T] bool, True where a frame begins an episode: all frames before it are
                forgotten, in the memory and within the chunk.
            state: Memory before the chunk.
        """
        latent_bte, state = self.net(image_bthwc, first_bt, state)
        logits = {name: head(latent_bte) for name, head in self.pi_head.items()}
        return VPTOutput(logits, self.value_head(latent_bte), state)

    def initial_state(self, batch: int) -> VPTState:
        """Return the empty memory for `batch` environments, on the network's device."""
        config = self.config
        device = self.net.final_ln.weight.device
        shape = (batch, config.n_recurrence_layers, config.memory_length, config.hidsize)
        return VPTState(
            mask=torch.zeros(batch, config.memory_length, dtype=torch.bool, device=device),
            keys=torch.zeros(shape, device=device),
            values=torch.zeros(shape, device=device),
        )


@cache  # once per process, which builds the network several times
def _note_if_slower() -> None:
    if not torch.cuda.is_available():
        _logger.warning(
            "model.compile is true, but without a GPU the package's own kernels are faster than "
            "what torch.compile makes (nano: 8.9 instead of 14.9 ms a step; 1x: 327 instead of "
            "351): leave it out."
        )


# ------------------------------------------------------------------------------------- action heads
# From the latent to log-probabilities of VPT's joint actions, and their sums.
#
# An action is `{"buttons": token, "camera": token}` (`env/actions.py` defines the tokens). The
# two heads are independent categoricals, so log-probability, entropy and KL divergence are sums
# over them. What MineStudio and this package call "logits" are *normalised* log-probabilities in
# float32. Source of the formulas: MineStudio, utils/vpt_lib/action_head.py.

Logits = Mapping[str, Tensor]
"""Per head: [..., N] normalised log-probabilities, float32."""

Actions = Mapping[str, Tensor]
"""Per head: [..., 1] tokens, int64."""

BUTTON_SIZES = tuple(len(choices) for choices in BUTTON_GROUPS.values())

CAMERA_BINS = 11
CAMERA_SIZES = (CAMERA_BINS, CAMERA_BINS)
NUM_CAMERA = CAMERA_BINS**2

NULL_CAMERA = NUM_CAMERA // 2
"""The token of a camera that does not turn."""

INITIAL_LOGIT_SCALE = 0.01
"""Fan-in scale of the heads: a new policy is almost uniform (MineStudio resets to the same)."""


class ActionHead(nn.Module, ABC):
    """A layer from the latent to a distribution over one head's tokens."""

    @abstractmethod
    def distribution(self, latent_bte: Tensor) -> Categorical:
        """[B, T, E] -> a distribution of batch shape [B, T]; other batch shapes work as well."""


class JointHead(ActionHead):
    """One linear logit for every joint action, as in VPT."""

    def __init__(self, width: int, choices: int, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        self.linear_layer = fan_in_linear(width, choices, INITIAL_LOGIT_SCALE)

    def distribution(self, latent_bte: Tensor) -> JointCategorical:
        """[B, T, E] -> a distribution whose `logits` are those of `forward`."""
        return JointCategorical((self.linear_layer(latent_bte) / self.temperature).float())

    def forward(self, latent_bte: Tensor) -> Tensor:
        """[B, T, E] -> [B, T, N] log-probabilities in float32."""
        return self.distribution(latent_bte).logits


class FactoredHead(ActionHead):
    """A linear logit per component; a joint action's logit is the sum of its components'.

    Unlike with `JointHead`, a sample of one action teaches every joint action that shares a
    component with it: 30 components make up the 8641 button combinations, and 22 the 121 camera
    movements.
    """

    def __init__(
        self, width: int, sizes: Sequence[int], temperature: float, exclusive: bool = False
    ) -> None:
        """Create the layer.

        Args:
            width: Size of the latent.
            sizes: Number of choices in each group; joint actions are numbered as in
                `product_membership`.
            temperature: Divides the logits.
            exclusive: Whether one more joint action, the last, is a component of its own.
        """
        super().__init__()
        self.sizes = tuple(sizes)
        self.exclusive = exclusive
        self.temperature = temperature
        self.linear_layer = fan_in_linear(width, sum(sizes) + exclusive, INITIAL_LOGIT_SCALE)
        self.membership_cn: Tensor
        membership_nc = product_membership(sizes, exclusive)
        self.register_buffer("membership_cn", membership_nc.T.contiguous(), persistent=False)

    def distribution(self, latent_bte: Tensor) -> FactoredCategorical:
        """[B, T, E] -> a distribution that is `forward`'s, up to rounding."""
        return FactoredCategorical(self._scores(latent_bte), self.sizes, self.exclusive)

    def forward(self, latent_bte: Tensor) -> Tensor:
        """[B, T, E] -> [B, T, N] log-probabilities in float32."""
        joint_btn = torch.matmul(self._scores(latent_bte), self.membership_cn)
        return F.log_softmax(joint_btn, dim=-1)

    def _scores(self, latent_bte: Tensor) -> Tensor:
        """[B, T, E] -> [B, T, components] in float32."""
        return (self.linear_layer(latent_bte) / self.temperature).float()


class ActionHeads(nn.ModuleDict):
    """The heads of a policy by name, each an `ActionHead`."""

    def forward(self, latent_bte: Tensor) -> ActionDistribution:
        """[B, T, E] -> the distribution over actions, of batch shape [B, T]."""
        heads = cast("Mapping[str, ActionHead]", self)
        return ActionDistribution(
            {name: head.distribution(latent_bte) for name, head in heads.items()}
        )


def make_action_heads(config: VPTConfig) -> ActionHeads:
    """Return the `buttons` and `camera` heads of the kind that `config` asks for."""
    width, temperature = config.hidsize, config.temperature
    if config.action_head == "factored":
        return ActionHeads(
            {
                "buttons": FactoredHead(width, BUTTON_SIZES, temperature, exclusive=True),
                "camera": FactoredHead(width, CAMERA_SIZES, temperature),
            }
        )
    return ActionHeads(
        {
            "buttons": JointHead(width, NUM_BUTTONS, temperature),
            "camera": JointHead(width, NUM_CAMERA, temperature),
        }
    )


def product_membership(sizes: Sequence[int], exclusive: bool = False) -> Tensor:
    """Return which choice of each group every joint action consists of.

    Args:
        sizes: Number of choices in each group.
        exclusive: Whether one more joint action, the last, is a component of its own, as the
            inventory key is in VPT's buttons.

    Returns:
        [product of sizes, sum of sizes] float32, one 1 per group and row; with `exclusive` a row
        and a column more. The order is that of `itertools.product`: the last group is fastest.
    """
    combinations, choices = math.prod(sizes), sum(sizes)
    choice_of = np.stack(np.unravel_index(np.arange(combinations), sizes), axis=1)
    columns = choice_of + np.cumsum([0, *sizes[:-1]])
    membership = np.zeros((combinations + exclusive, choices + exclusive), dtype=np.float32)
    np.put_along_axis(membership[:combinations], columns, 1.0, axis=1)
    membership[combinations:, choices:] = 1.0
    return torch.from_numpy(membership)


def log_prob(logits: Logits, actions: Actions) -> Tensor:
    """Log-probability of joint actions: the sum of the heads'.

    The camera's term counts even when the action's camera flag is off and its token is ignored,
    as in MineStudio.

    Args:
        logits: Per head [..., N].
        actions: Per head [..., 1] tokens.

    Returns:
        [...] float32.
    """
    terms = [logits[name].gather(-1, actions[name]).squeeze(-1) for name in logits]
    return torch.stack(terms).sum(dim=0)


def entropy(logits: Logits) -> Tensor:
    """Entropy in nats, `-sum p log p`, summed over the heads: [..., N] each -> [...]."""
    return -torch.stack([vecdot(log_p.exp(), log_p) for log_p in logits.values()]).sum(dim=0)


def kl_divergence(logits_p: Logits, logits_q: Logits) -> Tensor:
    """KL(p || q) in nats, `sum p (log p - log q)`, summed over the heads.

    Args:
        logits_p: Per head [..., N]; the expectation is taken under it.
        logits_q: Per head [..., N].

    Returns:
        [...] float32.
    """
    terms = [vecdot(logits_p[name].exp(), logits_p[name] - logits_q[name]) for name in logits_p]
    return torch.stack(terms).sum(dim=0)
