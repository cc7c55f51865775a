"""Agent tokens <-> Minecraft keys: VPT's hierarchical action space, as tables.

An *agent action* is two integers. `buttons` is the index of one choice per group of mutually
exclusive keys, in the order of `BUTTON_GROUPS` with the last group varying fastest, or
`INVENTORY_TOKEN` alone. `camera` is the index of a (pitch bin, yaw bin) pair and counts only if
the button combination contains the "camera" choice:

    buttons = ((((hotbar * 3 + fore_back) * 3 + left_right) * 3 + sprint_sneak) * 2 + use) * 2 ...
    camera  = pitch_bin * n_camera_bins + yaw_bin

An *environment action* is a dict from key name to 0 or 1, plus `camera`, the relative rotation
(pitch, yaw) in degrees; positive looks down and right. The space is OpenAI's VPT (Baker et al.
2022, appendix B.2) and equals MineStudio's `CameraHierarchicalMapping` + `ActionTransformer`.
"""

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.errors import InvalidActionError, did_you_mean
from rllib_minestudio.foundation.names import (
    BUTTON_GROUPS,
    INVENTORY_TOKEN,
    KEYS,
    NUM_BUTTONS,
)
from rllib_minestudio.foundation.options import Problems, is_integer, is_number, shown

EnvAction: TypeAlias = dict[str, Any]
"""Key name -> 0 or 1, and `camera` -> (pitch, yaw) in degrees."""

ENV_KEYS: tuple[str, ...] = tuple(key for key in KEYS if key != "drop")
"""Keys of the environment action space. MineStudio never sends `drop` to the game."""

_CANCELLING_GROUPS = ("fore_back", "left_right")
_QUANTIZATION_SCHEMES = ("mu_law", "linear")


@dataclass(frozen=True)
class CameraConfig:
    """How camera rotations are cut into bins (the fields are MineStudio's).

    Attributes:
        camera_binsize: Width of a bin, in degrees before the mu-law curve.
        camera_maxval: Largest rotation of one step, in degrees.
        camera_mu: Curvature of the mu-law curve; larger is finer around zero.
        camera_quantization_scheme: "mu_law" or "linear".

    Raises:
        InvalidOptionsError: If a field has a wrong type or an impossible value; lists all.
    """

    camera_binsize: int = 2
    camera_maxval: int = 10
    camera_mu: float = 10.0
    camera_quantization_scheme: str = "mu_law"

    def __post_init__(self) -> None:
        """Check all fields."""
        problems = Problems("camera_config")
        sizes = {"camera_binsize": self.camera_binsize, "camera_maxval": self.camera_maxval}
        for name, value in sizes.items():
            if not is_integer(value) or not 1 <= value <= 180:
                problems.add(name, value, "must be an integer from 1 to 180 (degrees)")
        if not problems and self.camera_maxval % self.camera_binsize:
            # Otherwise no bin would mean "do not turn".
            problems.add(
                "camera_maxval",
                self.camera_maxval,
                f"must be a multiple of camera_binsize={self.camera_binsize}",
            )
        if not is_number(self.camera_mu) or not 0 < self.camera_mu <= 1e6:
            problems.add("camera_mu", self.camera_mu, "must be a positive number, at most 1e6")
        problems.choice(
            "camera_quantization_scheme", self.camera_quantization_scheme, _QUANTIZATION_SCHEMES
        )
        problems.raise_if_any()

    @property
    def n_camera_bins(self) -> int:
        """Bins per axis; the middle one does not turn."""
        return 2 * self.camera_maxval // self.camera_binsize + 1

    @property
    def null_bin(self) -> int:
        """Index of the bin that does not turn."""
        return self.n_camera_bins // 2

    def bin_to_degrees(self, bins: np.ndarray) -> np.ndarray:
        """Decode bin indices to degrees (mu-law: ITU-T G.711's continuous expansion).

        Args:
            bins: Integers in [0, n_camera_bins), any shape.

        Returns:
            float64 of the same shape.
        """
        # The order of operations is MineStudio's, so that results agree to the last bit.
        degrees = bins * self.camera_binsize - self.camera_maxval
        if self.camera_quantization_scheme == "linear":
            return np.asarray(degrees, np.float64)
        unit = degrees / self.camera_maxval
        expanded = (1.0 / self.camera_mu) * ((1.0 + self.camera_mu) ** np.abs(unit) - 1.0)
        return np.sign(unit) * expanded * self.camera_maxval

    def degrees_to_bin(self, degrees: float) -> int:
        """Encode one rotation in degrees, clipped to +-camera_maxval, as the nearest bin."""
        clipped = max(-self.camera_maxval, min(self.camera_maxval, degrees))
        if self.camera_quantization_scheme == "mu_law":
            unit = abs(clipped) / self.camera_maxval
            curve = math.log(1.0 + self.camera_mu * unit) / math.log(1.0 + self.camera_mu)
            clipped = math.copysign(curve * self.camera_maxval, clipped)
        return round((clipped + self.camera_maxval) / self.camera_binsize)


class ActionMapper:
    """Translates agent actions to environment actions and back.

    Attributes:
        camera_config: The camera bins in use.
        n_camera_tokens: Number of camera tokens, n_camera_bins squared.
        null_camera_token: The camera token that does not turn.
    """

    def __init__(self, camera_config: CameraConfig | None = None) -> None:
        """Build the tables for `camera_config` (MineStudio's default if None)."""
        self.camera_config = camera_config or CameraConfig()
        n_bins = self.camera_config.n_camera_bins
        self.n_camera_tokens = n_bins * n_bins
        self.null_camera_token = self.camera_config.null_bin * (n_bins + 1)
        self._key_rows, self._camera_on = _button_tables()
        axis = self.camera_config.bin_to_degrees(np.arange(n_bins))
        pitch, yaw = np.meshgrid(axis, axis, indexing="ij")
        self._camera_degrees = np.stack([pitch.ravel(), yaw.ravel()], axis=1)

    def parse(self, action: Any) -> tuple[int, int]:
        """Read and check the tokens of an agent action.

        Args:
            action: Mapping with `buttons` and `camera`, or a pair of them; each an int or an
                array (NumPy, torch) with one element, of any shape.

        Raises:
            InvalidActionError: If a token is missing, not an integer, or out of range.
        """
        if isinstance(action, Mapping):
            if "buttons" not in action or "camera" not in action:
                raise InvalidActionError(
                    "An agent action needs 'buttons' and 'camera'; got the keys "
                    f"{shown(list(action))}."
                )
            buttons, camera = action["buttons"], action["camera"]
        elif isinstance(action, tuple) and len(action) == 2:
            buttons, camera = action
        else:
            raise InvalidActionError(
                f"An agent action is a mapping or a (buttons, camera) pair; got {shown(action)}."
            )
        return (
            _token("buttons", buttons, NUM_BUTTONS),
            _token("camera", camera, self.n_camera_tokens),
        )

    def to_env(self, buttons: int, camera: int) -> EnvAction:
        """Decode two tokens, in range, to a fresh environment action.

        Returns:
            All `KEYS` with 0 or 1 (int), and `camera`: float64 (2,), pitch and yaw in degrees.
        """
        env_action: EnvAction = dict(zip(KEYS, self._key_rows[buttons], strict=True))
        token = camera if self._camera_on[buttons] else self.null_camera_token
        env_action["camera"] = self._camera_degrees[token].copy()
        return env_action

    def uses_camera(self, buttons: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return where the camera's token counts, for button tokens in range of any shape."""
        return _effects()[1][buttons]

    def is_null(
        self, buttons: NDArray[np.integer], camera: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """Return where actions do nothing: no key is pressed, and the view does not turn.

        Args:
            buttons: Tokens in range, of any shape.
            camera: Tokens in range, of the same shape.
        """
        presses, turns = _effects()
        return ~presses[buttons] & ~(turns[buttons] & (camera != self.null_camera_token))

    def keys_of(self, action: Mapping[str, Any]) -> EnvAction:
        """Return an action in either form as every key and the camera.

        Args:
            action: Tokens, or keys as in `to_env`, of which some may be missing.

        Raises:
            InvalidActionError: If a token is missing, not an integer, or out of range.
        """
        if "buttons" in action:
            return self.to_env(*self.parse(action))
        return {**dict.fromkeys(KEYS, 0), "camera": np.zeros(2), **action}

    def from_env(self, env_action: Mapping[str, Any]) -> tuple[int, int]:
        """Encode an environment action as the nearest pair of tokens.

        Opposite keys pressed together cancel; of other keys in one group the later one wins;
        `inventory` excludes everything else.

        Args:
            env_action: Keys as in `to_env`; a missing key is not pressed, a missing `camera`
                does not turn.

        Returns:
            (buttons, camera).
        """
        if env_action.get("inventory", 0):
            return INVENTORY_TOKEN, self.null_camera_token
        pitch, yaw = env_action.get("camera", (0.0, 0.0))
        encode = self.camera_config.degrees_to_bin
        camera = encode(float(pitch)) * self.camera_config.n_camera_bins + encode(float(yaw))
        buttons = 0
        for group, choices in BUTTON_GROUPS.items():
            if group == "camera":
                choice = int(camera != self.null_camera_token)
            else:
                pressed = [i for i, key in enumerate(choices) if i and env_action.get(key, 0)]
                if group in _CANCELLING_GROUPS and len(pressed) == len(choices) - 1:
                    pressed = []
                choice = pressed[-1] if pressed else 0
            buttons = buttons * len(choices) + choice
        return buttons, camera


def check_env_action(action: Any) -> EnvAction:
    """Return a fresh copy of an environment action after checking its keys and camera.

    Args:
        action: Mapping from `ENV_KEYS` (all optional) to 0 or 1 and `camera` to two degrees.

    Raises:
        InvalidActionError: If a key is unknown or the camera is not two finite numbers.
    """
    if not isinstance(action, Mapping):
        raise InvalidActionError(
            f"An environment action is a mapping of keys; got {shown(action)}."
        )
    checked: EnvAction = {"camera": (0.0, 0.0)}
    for key, value in action.items():
        if key == "camera":
            checked[key] = _degrees(value)
        elif key in _KEY_SET:
            checked[key] = _token(key, value, 2)
        else:
            raise InvalidActionError(
                f"Unknown key {shown(key)} in an environment action."
                f"{did_you_mean(key, (*ENV_KEYS, 'camera'))}"
            )
    return checked


_KEY_SET = frozenset(KEYS)

_MALFORMED = (TypeError, ValueError, OverflowError, RuntimeError)
"""Exceptions that NumPy and torch raise for what is no number, or too large a one."""


def _token(name: str, value: Any, count: int) -> int:
    """Return `value`, an int or one-element array, as an int in [0, count)."""
    try:
        if not isinstance(value, int):
            # .item() reads NumPy and torch scalars and one-element arrays alike.
            value = value.item() if hasattr(value, "item") else np.asarray(value).item()
        token = operator.index(value)
    except _MALFORMED as error:
        raise InvalidActionError(f"{name} must be one integer; got {shown(value)}.") from error
    if not 0 <= token < count:
        raise InvalidActionError(f"{name} must be in [0, {count - 1}]; got {shown(token)}.")
    return token


def _degrees(value: Any) -> NDArray[np.float64]:
    """Return a rotation as float64 (2,): pitch and yaw."""
    try:
        camera = np.asarray(value, np.float64)
    except _MALFORMED:
        camera = np.empty(0)
    if camera.shape != (2,) or not np.isfinite(camera).all():
        raise InvalidActionError(
            f"camera must be two finite numbers (pitch, yaw) in degrees; got {shown(value)}."
        )
    return camera


@cache
def _effects() -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return, per button token, whether a key is pressed, and whether the camera counts."""
    key_rows, camera_on = _button_tables()
    return np.any(key_rows, axis=1), np.array(camera_on)


@cache
def _button_tables() -> tuple[list[list[int]], list[bool]]:
    """Return, per button token, the state of each of `KEYS` and whether the camera counts."""
    column = {key: i for i, key in enumerate(KEYS)}
    rows = np.zeros((NUM_BUTTONS, len(KEYS)), np.uint8)
    camera_on = [False] * NUM_BUTTONS
    for token, choices in enumerate(product(*BUTTON_GROUPS.values())):
        *keys, camera = choices
        rows[token, [column[key] for key in keys if key != "none"]] = 1
        camera_on[token] = camera == "camera"
    rows[INVENTORY_TOKEN, column["inventory"]] = 1
    camera_on[INVENTORY_TOKEN] = True  # MineStudio lets the cursor move in the opening tick
    return rows.tolist(), camera_on
