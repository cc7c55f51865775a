"""A fast copy of the network for one frame at a time, which computes the same numbers.

It differs from `network.py` as follows:

- Scalings (1/255 of the image, 1/d of the queries, 1/temperature) are folded into weights.
- Convolutions read and write channels-last frames; the dense layer's weights are permuted to that
  order once, instead of every frame's features.
- Queries, keys, values and position logits come from one product; so do all heads.
- The memory is a ring (`attention.py`), so nothing is moved when a frame is added.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_minestudio.models.kernels import engines
from rllib_minestudio.models.kernels.engine_choice import TORCH, FrameNorm, choose
from rllib_minestudio.models.kernels.engines import Convolution, ConvolutionLayer, Engine
from rllib_minestudio.models.vpt.attention import (
    POSITION_BASES,
    RingView,
    SelfAttention,
    TransformerBlock,
)
from rllib_minestudio.models.vpt.layers import DownStack, ImageEncoder, check_bytes
from rllib_minestudio.models.vpt.network import FactoredHead, VPTNetwork


class InferenceStack:
    """`DownStack` without gradients."""

    def __init__(self, stack: DownStack, layout: WeightLayout, input_scale: float) -> None:
        first = stack.firstconv
        self._dtype = layout.dtype
        self._first = InferenceConv(
            first.layer, first.norm, layout, relu=False, input_scale=input_scale
        )
        self._norm = FrameNorm((stack.n.weight, stack.n.bias), stack.n.eps, layout.dtype)
        self._blocks = [
            tuple(
                InferenceConv(conv.layer, conv.norm, layout) for conv in (block.conv0, block.conv1)
            )
            for block in stack.blocks
        ]

    def __call__(self, x_nchw: Tensor) -> Tensor:
        """[N, C_in, H, W] of any dtype -> [N, C, H/2, W/2] of the layout's."""
        x_nchw = self._norm(self._pooled(self._first(x_nchw.to(self._dtype))))
        for conv0, conv1 in self._blocks:
            x_nchw = conv1(conv0(x_nchw), skip_nchw=x_nchw)
        return x_nchw

    def _pooled(self, x_nchw: Tensor) -> Tensor:
        """Max pool and ReLU."""
        return self._blocks[0][0].engine.pool_positive(x_nchw)


class WholeStack:
    """`DownStack` without gradients, computed as a whole by an engine."""

    def __init__(
        self, stack: DownStack, engine: Engine, layout: WeightLayout, input_scale: float
    ) -> None:
        self._engine = engine
        self._packed = engine.pack(stack.weights().copied(), layout.dtype, input_scale)

    def __call__(self, x: Tensor) -> Tensor:
        """[N, C_in, H, W] of any dtype, or what the engine reads -> [N, C, H/2, W/2]."""
        return self._engine.forward(x, self._packed)


class InferenceEncoder:
    """`ImageEncoder` without gradients."""

    def __init__(self, encoder: ImageEncoder, layout: WeightLayout) -> None:
        cnn = encoder.cnn
        self._dtype = layout.dtype
        self._reads_bytes = cnn.stacks[0].reads_bytes
        self._stacks = [
            _stack(stack, layout, input_scale=1.0 if i else 1 / 255)
            for i, stack in enumerate(cnn.stacks)
        ]
        features, channels = cnn.dense.layer.in_features, cnn.stacks[-1].n.num_channels
        order = torch.arange(features, device=cnn.dense.layer.weight.device)
        order = order.view(channels, -1).T.flatten()  # [C, H * W] -> [H * W, C]
        self._dense_norm = InferenceLayerNorm(cnn.dense.norm, layout.dtype, order)
        self._dense = PackedLinear(cnn.dense.layer.weight[:, order], None, layout, relu=True)
        self._linear_norm = InferenceLayerNorm(encoder.linear.norm, layout.dtype)
        self._linear = PackedLinear(encoder.linear.layer.weight, None, layout, relu=True)

    def __call__(self, image_bhwc: Tensor) -> Tensor:
        """[B, H, W, 3] uint8 -> [B, hidsize]."""
        check_bytes(image_bhwc)
        x = image_bhwc
        if not self._reads_bytes:
            x = x.permute(0, 3, 1, 2).to(self._dtype)
        for stack in self._stacks:
            x = stack(x)
        x_nchw = x.to(self._dtype)
        x_be = self._dense(self._dense_norm(x_nchw.permute(0, 2, 3, 1).flatten(1)))
        return self._linear(self._linear_norm(x_be))


def _stack(
    stack: DownStack, layout: WeightLayout, input_scale: float
) -> WholeStack | InferenceStack:
    """Lay a stack out for the engine that computes it."""
    engine = stack.engine_for(layout.dtype)
    if engine is TORCH:
        return InferenceStack(stack, layout, input_scale)
    return WholeStack(stack, engine, layout, input_scale)


class CompiledEncoder:
    """`ImageEncoder` as torch.compile left it, so that new weights do not compile it again."""

    def __init__(self, encoder: ImageEncoder, dtype: torch.dtype) -> None:
        self._encoder = encoder
        self._dtype = dtype

    def __call__(self, image_bhwc: Tensor) -> Tensor:
        """[B, H, W, 3] uint8 -> [B, hidsize]."""
        reduced = self._dtype == torch.bfloat16
        with torch.autocast(image_bhwc.device.type, torch.bfloat16, enabled=reduced):
            return self._encoder(image_bhwc[:, None])[:, 0].to(self._dtype)


class InferenceBlock:
    """`TransformerBlock` for one frame."""

    def __init__(self, block: TransformerBlock, layout: WeightLayout) -> None:
        attention = block.r.orc_block
        self._dtype = layout.dtype
        self._heads = attention.heads
        self._norm = InferenceLayerNorm(block.pre_r_ln, layout.dtype)
        self._qkvr = _joined_projections(attention, layout)
        self._by_slot = _rotations(attention.b_nd.detach())
        proj, mlp0, mlp1 = attention.proj_layer, block.mlp0, block.mlp1.layer
        self._proj = PackedLinear(proj.weight, proj.bias, layout)
        self._mlp_norm = InferenceLayerNorm(mlp0.norm, layout.dtype)
        self._mlp0 = PackedLinear(mlp0.layer.weight, None, layout, relu=True)
        self._mlp1 = PackedLinear(mlp1.weight, mlp1.bias, layout)

    def __call__(self, x_be: Tensor, memory: RingView, layer: int) -> Tensor:
        """Add the frame's key and value to the memory and attend to it: [B, E] -> [B, E]."""
        batch, width = x_be.shape
        x_be = self._norm(x_be)
        projected = self._qkvr(x_be).float()  # the memory and its softmax stay in float32
        q_be, k_be, v_be, r_bn = projected.split(
            [width, width, width, POSITION_BASES * self._heads], dim=1
        )
        keys_bhmd, values_bhmd = memory.add(layer, self._split(k_be), self._split(v_be))
        r_bhn1 = self._split(r_bn).unsqueeze(3)
        # For matrices this small, a matrix product would spend more time starting threads.
        by_age_bhm = (r_bhn1 * self._by_slot[memory.slot_b].unsqueeze(1)).sum(2)
        out_bh1d = F.scaled_dot_product_attention(
            self._split(q_be).unsqueeze(2),
            keys_bhmd,
            values_bhmd,
            attn_mask=(by_age_bhm + memory.bias_b1m).unsqueeze(2),
            scale=1.0,
        )
        x_be = x_be + self._proj(out_bh1d.reshape(batch, width).to(self._dtype))
        return x_be + self._mlp1(self._mlp0(self._mlp_norm(x_be)))

    def _split(self, x_be: Tensor) -> Tensor:
        """[B, H * D] -> [B, H, D]."""
        return x_be.unflatten(1, (self._heads, -1))


class InferenceNetwork:
    """A whole policy, from bytes to unnormalised logits and value."""

    def __init__(
        self, network: VPTNetwork, dtype: torch.dtype, batch: int, compiled: bool = False
    ) -> None:
        """Copy the weights.

        Args:
            network: Their source; not kept.
            dtype: Precision of everything between the image and the latent.
            batch: Frames per call to optimise for; other numbers work as well.
            compiled: Leave the image encoder, nearly all of the work, to torch.compile.
        """
        trunk, layout = network.net, WeightLayout(dtype, batch)
        self._encoder = (
            CompiledEncoder(trunk.img_process, dtype)
            if compiled
            else InferenceEncoder(trunk.img_process, layout)
        )
        self._blocks = [InferenceBlock(block, layout) for block in trunk.recurrent_layer.blocks]
        self._last_norm = InferenceLayerNorm(trunk.lastlayer.norm, layout.dtype)
        self._last = PackedLinear(trunk.lastlayer.layer.weight, None, layout, relu=True)
        self._final_norm = InferenceLayerNorm(trunk.final_ln, torch.float32)
        self._heads, self._sizes, self._memberships = _joined_heads(network, layout)

    def __call__(self, image_bhwc: Tensor, memory: RingView) -> tuple[dict[str, Tensor], Tensor]:
        """Take one step and advance the memory.

        Args:
            image_bhwc: [B, H, W, 3] uint8.
            memory: These B environments' memories, from `RingMemory.advance`.

        Returns:
            Per head [B, N] logits (divided by the temperature, not normalised), and the value [B]
            in normalised units; float32.
        """
        x_be = self._encoder(image_bhwc)
        for layer, block in enumerate(self._blocks):
            x_be = block(x_be, memory, layer)
        x_be = self._last(self._last_norm(x_be.relu_()))
        *scores, value_b1 = self._heads(self._final_norm(x_be.float())).split(self._sizes, dim=1)
        logits = {}
        for (name, membership_cn), score in zip(self._memberships.items(), scores, strict=True):
            logits[name] = score if membership_cn is None else score @ membership_cn
        return logits, value_b1.squeeze(1)


def _joined_projections(attention: SelfAttention, layout: WeightLayout) -> PackedLinear:
    """Queries (over d), keys, values and position coefficients in one product."""
    query, rest = attention.q_layer, attention.r_layer
    features = query.out_features // attention.heads
    weight = torch.cat(
        [
            query.weight / features,
            attention.k_layer.weight,
            attention.v_layer.weight,
            rest.weight,
        ]
    )
    none = torch.zeros_like(query.bias)
    bias = torch.cat([query.bias / features, none, none, rest.bias])
    return PackedLinear(weight, bias, layout)


def _rotations(b_nm: Tensor) -> Tensor:
    """[bases, M] by age -> [M, bases, M] by slot, for each slot of the newest frame."""
    memory = b_nm.shape[1]
    slot = torch.arange(memory, device=b_nm.device)
    age = (slot[:, None] - slot[None, :]) % memory  # of every slot, for every newest slot
    return b_nm[:, age].transpose(0, 1).contiguous()  # [bases, M, M] -> [M, bases, M]


def _joined_heads(
    network: VPTNetwork, layout: WeightLayout
) -> tuple[PackedLinear, list[int], dict[str, Tensor | None]]:
    """All heads in one product, their sizes, and per action head the membership if factored."""
    weights, biases, memberships = [], [], {}
    for name, head in network.pi_head.items():
        weights.append(head.linear_layer.weight / head.temperature)
        biases.append(head.linear_layer.bias / head.temperature)
        memberships[name] = head.membership_cn if isinstance(head, FactoredHead) else None
    value = network.value_head.linear
    weights.append(value.weight)
    biases.append(value.bias)
    joined = PackedLinear(
        torch.cat(weights), torch.cat(biases), layout._replace(dtype=torch.float32)
    )
    return joined, [weight.shape[0] for weight in weights], memberships


# ---------------------------------------------------------------------------- layers
# In a rollout the same weights serve thousands of steps of a few frames each. On the CPU, oneDNN
# would spend much of a linear layer's time on rearranging its weights. Doing that once makes small
# batches 2 to 5 times faster, with the same sums in another order.

_ONEDNN = torch.ops.mkldnn


class WeightLayout(NamedTuple):
    """What weights are laid out for."""

    dtype: torch.dtype
    """Precision of inputs and results."""

    batch: int
    """Rows per call to optimise for; other numbers work as well."""

    def arithmetic(self, weight: Tensor) -> torch.dtype:
        """Precision of a linear layer's weights and sums."""
        processor = engines.detected(with_kernels=False)
        return processor.arithmetic(self.dtype, weight.device)


class PackedLinear:
    """x W^T + b, optionally followed by a ReLU."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, layout: WeightLayout, relu: bool = False
    ) -> None:
        """Pack the layer.

        Args:
            weight: [out, in].
            bias: [out] or None.
            layout: The layout, whose precision inputs must have.
            relu: Whether a ReLU follows.
        """
        self._dtype, self._arithmetic = layout.dtype, layout.arithmetic(weight)
        self._weight = weight.detach().to(self._arithmetic).contiguous()
        self._bias = None if bias is None else bias.detach().to(self._arithmetic).contiguous()
        self._relu = relu
        self._packed = engines.detected(with_kernels=False).has_onednn_for(self._weight.device)
        if self._packed:
            self._weight = _ONEDNN._reorder_linear_weight(self._weight, layout.batch)

    def __call__(self, x: Tensor) -> Tensor:
        """[B, in] -> [B, out]."""
        x = x.to(self._arithmetic)
        if self._packed:
            after = "relu" if self._relu else "none"
            x = _ONEDNN._linear_pointwise(x, self._weight, self._bias, after, [], "")
            return x.to(self._dtype)
        x = F.linear(x, self._weight, self._bias).to(self._dtype)
        return x.relu_() if self._relu else x


class InferenceConv:
    """A 3x3 convolution of the same size, with optional group norm before and ReLU after it."""

    def __init__(
        self,
        layer: nn.Conv2d,
        norm: nn.GroupNorm | None,
        layout: WeightLayout,
        relu: bool = True,
        input_scale: float = 1.0,
    ) -> None:
        """Copy the weights; `input_scale` multiplies the input, at no cost."""
        of_norm = () if norm is None else (norm.weight, norm.bias)
        epsilon = 0.0 if norm is None else norm.eps
        self.engine = choose(
            Convolution(
                channels=(layer.in_channels, layer.out_channels),
                dtype=layout.dtype,
                weight_dtype=layer.weight.dtype,
                device=layer.weight.device,
                has_bias=layer.bias is not None,
            )
        )
        weights = ConvolutionLayer((layer.weight, layer.bias, *of_norm), epsilon, relu)
        self._packed: Any = self.engine.pack(weights, layout.dtype, input_scale)

    def __call__(self, x_nchw: Tensor, skip_nchw: Tensor | None = None) -> Tensor:
        """[N, C_in, H, W] in channels-last layout -> [N, C, H, W], likewise.

        `skip_nchw`, of the result's shape, is added at the end.
        """
        return self.engine.forward(x_nchw, self._packed, skip_nchw)


class InferenceLayerNorm:
    """Normalises each row, whose features may be in another order than the norm's."""

    def __init__(self, norm: nn.LayerNorm, dtype: torch.dtype, order: Tensor | None = None) -> None:
        """Copy the weights.

        Args:
            norm: The norm.
            dtype: Precision.
            order: [features], the index in `norm` of each feature of the input.
        """
        weight, bias = norm.weight.detach(), norm.bias.detach()
        if order is not None:
            weight, bias = weight[order], bias[order]
        self._weight, self._bias = weight.to(dtype), bias.to(dtype)
        self._epsilon = norm.eps

    def __call__(self, x: Tensor) -> Tensor:
        """Keep the shape."""
        return F.layer_norm(x, self._weight.shape, self._weight, self._bias, self._epsilon)
