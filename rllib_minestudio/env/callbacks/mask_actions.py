"""MaskActions: keys held at fixed values, whatever the agent does."""

from __future__ import annotations

from typing import Any

from rllib_minestudio.env.actions import KEYS, EnvAction, check_env_action
from rllib_minestudio.env.callbacks.base import MinecraftCallback, Sim
from rllib_minestudio.errors import InvalidActionError
from rllib_minestudio.option_checks import Problems


class MaskActionsCallback(MinecraftCallback):
    """Overrides parts of every environment action, such as `inventory=0`."""

    def __init__(self, **action_settings: Any) -> None:
        """Check and keep the overrides.

        Args:
            **action_settings: Key name -> 0 or 1; `camera` -> (pitch, yaw) in degrees.

        Raises:
            InvalidOptionsError: If a key is unknown or a value impossible; lists all problems.
        """
        problems = Problems()
        for key, value in action_settings.items():
            if key not in KEYS and key != "camera":
                problems.unknown("key", key, (*KEYS, "camera"))
                continue
            try:
                check_env_action({key: value})
            except InvalidActionError as error:
                problems.messages.append(str(error))
        problems.raise_if_any()
        self.action_settings = action_settings

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Return the action with the overrides in place."""
        return {**action, **self.action_settings}

    def __repr__(self) -> str:
        """Show the overrides."""
        return f"MaskActionsCallback(**{self.action_settings!r})"
