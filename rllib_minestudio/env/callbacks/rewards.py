"""Rewards: payment for events that the game counts, such as kills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.env.voxel.game.statistics import STATISTICS
from rllib_minestudio.episode_info import TASK
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_checks import Problems, is_integer, is_list, is_number

_LARGEST_REWARD = 1e9


@dataclass(frozen=True)
class _Rule:
    """One entry of the reward configuration."""

    event: str
    identity: str
    objects: tuple[str, ...]
    reward: float
    max_reward_times: int
    task: str | None = None

    def count(self, info: Info) -> float:
        """Return how often the event has happened to any of the objects so far."""
        counts = info.get(self.event)
        if not counts:
            return 0.0
        return sum(float(counts.get(name, 0)) for name in self.objects)


class RewardsCallback(MinecraftCallback):
    """Replaces the reward of each step by what the rules pay for it.

    MineStudio pays once per step and rule however often the event happened; here two cows killed
    in one tick earn two rewards. A payment is made per unit of the game's counter; mind that some,
    such as `damage_dealt`, count in tenths. `max_reward_times` limits the payments per episode
    and identity. A rule with a `task` pays in episodes of that task only, for what happens in
    them; `Task` or `TaskFile`, which name the task, come before.
    """

    def __init__(self, reward_cfg: Sequence[Mapping[str, Any]]) -> None:
        """Check and keep the rules.

        Args:
            reward_cfg: One mapping per rule: `event` (one of `STATISTICS`), `objects` (names
                counted together), `reward` (paid per occurrence), `max_reward_times`,
                `identity` (rules of one identity share the limit) and, if it is to pay for one
                task only, `task` (its name). Example:
                `[{"event": "kill_entity", "objects": ["cow"], "reward": 1.0,
                "identity": "kill cow", "max_reward_times": 30}]`.

        Raises:
            InvalidOptionsError: If a rule is incomplete or of a wrong type; lists all problems.
        """
        problems = Problems()
        if not is_list(reward_cfg):
            problems.add("reward_cfg", reward_cfg, "must be a list of mappings")
            reward_cfg = []
        for i, entry in enumerate(reward_cfg):
            _check_rule(problems, f"reward_cfg[{i}]", entry)
        problems.raise_if_any()
        self.reward_cfg = [dict(entry) for entry in reward_cfg]
        self._rules = [
            _Rule(**{**entry, "objects": tuple(entry["objects"])}) for entry in self.reward_cfg
        ]
        self._counts = [0.0] * len(self._rules)
        self._times_paid: Counter[str] = Counter()

    @property
    def highest_return(self) -> float:
        """What the rules pay for an episode at most: each identity's limit times its best rule."""
        tasks = {rule.task for rule in self._rules}
        return max((self._highest_return_of(task) for task in tasks), default=0.0)

    def _highest_return_of(self, task: str | None) -> float:
        paying = [rule for rule in self._rules if rule.task in (None, task)]
        highest = 0.0
        for identity in {rule.identity for rule in paying}:
            rules = [rule for rule in paying if rule.identity == identity]
            best = max(rule.reward for rule in rules)
            highest += max(0.0, best) * max(rule.max_reward_times for rule in rules)
        return highest

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Take the present counts as zero: a fast reset does not clear the game's statistics."""
        if TASK not in info and any(rule.task is not None for rule in self._rules):
            raise InvalidOptionsError(
                "Rewards has rules with a task, but no callback before it names the episode's: "
                "list Task or TaskFile before Rewards."
            )
        self._counts = [rule.count(info) for rule in self._rules]
        self._times_paid.clear()
        return obs, info

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Pay for what happened since the previous step."""
        earned = 0.0
        for i, rule in enumerate(self._rules):
            count = rule.count(info)
            happened = int(count - self._counts[i])
            self._counts[i] = count
            if happened <= 0 or rule.task not in (None, info.get(TASK)):
                continue
            payments = min(happened, rule.max_reward_times - self._times_paid[rule.identity])
            if payments > 0:
                self._times_paid[rule.identity] += payments
                earned += payments * rule.reward
        return obs, earned, terminated, truncated, info

    def __repr__(self) -> str:
        """Show the rules."""
        return f"RewardsCallback({self.reward_cfg!r})"


def _check_rule(problems: Problems, where: str, entry: Any) -> None:
    """Note what is wrong with one rule."""
    names = [field.name for field in fields(_Rule)]
    if not isinstance(entry, Mapping):
        problems.add(where, entry, f"must be a mapping with {', '.join(names[:-1])}")
        return
    task: Any = entry.get("task")
    if task is not None and (not isinstance(task, str) or not task):
        problems.add(f"{where}.task", task, "must be the name of a task, or be left out")
    problems.known(f"field of {where}", entry, names)
    problems.choice(f"{where}.event", entry.get("event"), STATISTICS)
    if not isinstance(entry.get("identity"), str):
        problems.add(f"{where}.identity", entry.get("identity"), "must be a string")
    objects: Any = entry.get("objects")
    if not is_list(objects) or not objects or not all(isinstance(name, str) for name in objects):
        problems.add(f"{where}.objects", objects, "must be a list of names, such as ['cow']")
    reward: Any = entry.get("reward")
    if not is_number(reward) or abs(reward) > _LARGEST_REWARD:
        rule = f"must be a number between {-_LARGEST_REWARD:g} and {_LARGEST_REWARD:g}"
        problems.add(f"{where}.reward", reward, rule)
    times: Any = entry.get("max_reward_times")
    if not is_integer(times) or times < 0:
        problems.add(f"{where}.max_reward_times", times, "must be an integer of at least 0")
