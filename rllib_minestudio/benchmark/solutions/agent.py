"""The agent that plays a task's scripted solution."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.benchmark.solutions.player import OmniscientBody
from rllib_minestudio.benchmark.solutions.registry import make_solution
from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.human_limits import WITHOUT_LIMITS
from rllib_minestudio.env.agents.toolmaker.agent import embedded_game, press
from rllib_minestudio.env.agents.toolmaker.body import Skill
from rllib_minestudio.env.agents.toolmaker.screens import close_screen


class SolutionAgent:
    """Plays a scripted solution: it looks at the engine's state, and acts by MineStudio's actions.

    It shows that a task can be solved, and is no yardstick for players who see frames. A solution
    that fails is begun anew; after one that is done it stands still.
    """

    def __init__(self, solution: Any, seed: int | None = None) -> None:
        """Choose what to play.

        Args:
            solution: A family and its parameters, as in a task file.
            seed: Of where in a slot one clicks, and the like; None draws one.

        Raises:
            InvalidOptionsError: There is no such solution; lists all problems.
        """
        self.family = make_solution(solution)
        self._random = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> None:
        """Forget the episode before."""
        self._player: OmniscientBody | None = None
        self._skill: Skill | None = None

    def act(self, env: gym.Env[Any, Any]) -> dict[str, Any]:
        """Return the next action for a `MineStudioEnv` or a wrapped one, of the type that it takes.

        Raises:
            TypeError: If it is no `MineStudioEnv`.
            InvalidOptionsError: If the game is not the embedded engine.
        """
        base, backend = embedded_game(env, "a scripted solution")
        if self._player is None or self._skill is None:
            self._player = OmniscientBody(WITHOUT_LIMITS, self._random, backend.engine)
            self._skill = self._pursue(self._player)
        self._player.feel(base.sim.info)
        action: EnvAction = dict(next(self._skill))
        action["camera"] = self._player.move_mouse(action.get("camera", (0.0, 0.0)))
        return press(base, self._player, action)

    def _pursue(self, player: OmniscientBody) -> Skill:
        while not (yield from self.family.play(player)):
            yield from close_screen(player)
            yield {}  # time passes, whatever failed
        while True:
            yield {}
