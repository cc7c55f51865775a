"""What a batch for VPT's RLModule holds, checked and brought to the network's device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from torch import Tensor

from rllib_minestudio.errors import InvalidBatchError
from rllib_minestudio.models.vpt import VPTNetwork, VPTState

FIRST = "first"
"""Batch key, [B, T] bool: the frame begins an episode. Absent means that none does."""

IMAGE = "image"
"""Key of the frame in an observation."""


def unpack(batch: Mapping[str, Any], network: VPTNetwork) -> tuple[Tensor, Tensor, VPTState]:
    """Take a batch apart; its parts may be tensors of any device or NumPy arrays.

    Args:
        batch: `Columns.OBS` with `image`; `first` and `Columns.STATE_IN` may be missing: then no
            frame begins an episode, or the first of each row does.
        network: Says shapes and device.

    Returns:
        The arguments of the network: image [B, T, H, W, 3] uint8, first [B, T] bool, and state.

    Raises:
        InvalidBatchError: A part is missing, or has another shape or type.
    """
    device = network.net.final_ln.weight.device
    image_bthwc = _image(batch, network.config.img_shape).to(device)
    shape = image_bthwc.shape[:2]
    given = batch.get(FIRST)
    if given is None:
        first_bt = torch.zeros(shape, dtype=torch.bool, device=device)
    else:
        first_bt = _tensor(FIRST, given).to(device).bool()
        if first_bt.shape != shape:
            raise InvalidBatchError(
                f"{FIRST!r} is {_shown(first_bt)}: it must have the image's batch and time axes, "
                f"{tuple(shape)}."
            )
    state = batch.get(Columns.STATE_IN)
    if not state:
        return image_bthwc, first_bt, network.initial_state(shape[0])
    return image_bthwc, first_bt, _state(state, network, shape[0])


def _image(batch: Mapping[str, Any], img_shape: tuple[int, ...]) -> Tensor:
    obs = batch.get(Columns.OBS)
    if not isinstance(obs, Mapping) or IMAGE not in obs:
        found = sorted(obs) if isinstance(obs, Mapping) else type(obs).__name__
        raise InvalidBatchError(
            f"{Columns.OBS!r} is {found}: it must be a dict with {IMAGE!r}, uint8 "
            f"(B, T, {', '.join(map(str, img_shape))})."
        )
    image = _tensor(f"{Columns.OBS}.{IMAGE}", obs[IMAGE])
    if image.dtype != torch.uint8 or image.shape[2:] != tuple(img_shape) or image.dim() != 5:
        hint = ""
        if image.shape[-3:] == tuple(img_shape) and image.dim() < 5:
            missing = "a time axis: image[:, None]" if image.dim() == 4 else "image[None, None]"
            hint = f" It lacks {missing}."
        raise InvalidBatchError(
            f"{Columns.OBS}.{IMAGE} is {_shown(image)}: it must be uint8 of shape (B, T, "
            f"{', '.join(map(str, img_shape))}), batch and time first.{hint}"
        )
    return image


def _state(given: Any, network: VPTNetwork, batch: int) -> VPTState:
    if not isinstance(given, Mapping) or set(given) != set(VPTState._fields):
        found = sorted(given) if isinstance(given, Mapping) else type(given).__name__
        raise InvalidBatchError(
            f"{Columns.STATE_IN!r} is {found}: pass what came back as {Columns.STATE_OUT!r}, a "
            f"dict of {', '.join(VPTState._fields)}, or leave it out where an episode begins."
        )
    config, device = network.config, network.net.final_ln.weight.device
    memory = (config.n_recurrence_layers, config.memory_length, config.hidsize)
    tensors = []
    for name in VPTState._fields:
        tensor = _tensor(f"{Columns.STATE_IN}.{name}", given[name])
        of_one = (config.memory_length,) if name == "mask" else memory
        if tensor.shape != (batch, *of_one):
            hint = ""
            if tensor.shape == of_one:
                hint = " It lacks the batch axis: state[None] of each part."
            raise InvalidBatchError(
                f"{Columns.STATE_IN}.{name} is {_shown(tensor)}: it must have shape "
                f"{(batch, *of_one)}, one memory per row of the batch.{hint}"
            )
        dtype = torch.bool if name == "mask" else torch.float32
        tensors.append(tensor.to(device, dtype))
    return VPTState(*tensors)


def _tensor(name: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        # What comes out of Ray's object store is read-only, which torch warns of.
        return torch.from_numpy(np.require(value, requirements=("C", "W")))
    raise InvalidBatchError(
        f"{name} is a {type(value).__name__}: it must be a tensor or a NumPy array."
    )


def _shown(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
