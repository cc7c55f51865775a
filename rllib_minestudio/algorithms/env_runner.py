"""The env runner: plays the policy in its environments and cuts what happens into fragments.

Only the observation, the action and two numbers are recorded per step. The network's memory stays
on the device, in a rollout session; it is copied once, at the start of a fragment.
(RLlib's own runner stores every output of the module at every step: with VPT's memory that is
megabytes per step.)
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.utils.metrics import SAMPLE_TIMER, WEIGHTS_SEQ_NO
from torch import Tensor

from rllib_minestudio.algorithms.env_pool import Episode, LockStepEnvs
from rllib_minestudio.algorithms.envs import resolve_env
from rllib_minestudio.algorithms.fragment import Fragment, FragmentRows


class Rollout(NamedTuple):
    """What one call of `sample` brings.

    Attributes:
        fragments: One per environment.
        episodes: Those that ended meanwhile.
        metrics: RLlib's counters and timers.
    """

    fragments: list[Fragment]
    episodes: list[Episode]
    metrics: dict[str, Any]


class MineStudioEnvRunner(SingleAgentEnvRunner):
    """Collects one fragment per environment and call of `sample`."""

    env: Any = None

    def make_env(self) -> None:
        """Build the environments; each derives its own episodes from its two indices."""
        if self.env is not None:
            self.env.close()
        maker = resolve_env(self.config.env)
        options = {"seed": self.config.seed or 0, **self.config.env_config}
        contexts = [
            EnvContext(
                options,
                worker_index=self.worker_index or 0,
                vector_index=i,
                num_workers=self.num_workers,
            )
            for i in range(self.config.num_envs_per_env_runner)
        ]
        self.env = LockStepEnvs(
            [partial(maker, context) for context in contexts],
            gamma=self.config.gamma,
        )
        self.num_envs = self.env.num_envs
        self._needs_initial_reset = True

    def sample(self, **_: Any) -> Rollout:
        """Play `rollout_fragment_length` steps in every environment.

        Episodes run on from call to call.
        """
        with self.metrics.log_time(SAMPLE_TIMER):
            if self._needs_initial_reset:
                self._start()
            fragments, episodes = self._collect(self.config.rollout_fragment_length)
        self.metrics.log_value(WEIGHTS_SEQ_NO, self._weights_seq_no, window=1)
        self._increase_sampled_metrics(sum(map(len, fragments)), len(episodes))
        return Rollout(fragments, episodes, self.get_metrics())

    def set_state(self, state: dict[str, Any]) -> None:
        """Load weights whatever their version: a run may be rolled back to older ones."""
        if COMPONENT_RL_MODULE in state:
            self._weights_seq_no = 0
        super().set_state(state)

    # ---------------------------------------------------------------- the loop

    def _start(self) -> None:
        """First episodes, empty memories."""
        self._obs = self.env.reset(seeds=[None] * self.num_envs)
        if self.config.decorrelation_steps:
            rng = np.random.default_rng((self.config.seed or 0, self.worker_index or 0))
            self._obs = self.env.decorrelate(self.config.decorrelation_steps, rng)
        self._first = np.ones(self.num_envs, np.bool_)
        self._session = self.module.make_rollout_session(self.num_envs)
        self._fragment_index = 0
        self._env_ids = [f"{self.worker_index or 0}-{i}" for i in range(self.num_envs)]
        self._needs_initial_reset = False

    def _collect(self, length: int) -> tuple[list[Fragment], list[Episode]]:
        rows = FragmentRows(self.num_envs, length, self._obs.shape[1:])
        state_in = {
            name: tensor.cpu().numpy() for name, tensor in self._session.state()._asdict().items()
        }
        episodes: list[Episode] = []
        for t in range(length):
            action, logp, value = self._act()
            rows.write_decision(
                t, obs=self._obs, first=self._first, action=action, logp=logp, value=value
            )
            step = self.env.step(action)
            rows.write_outcome(
                t, reward=step.reward, terminated=step.terminated, truncated=step.truncated
            )
            for i, value_after in self._values(step.final_obs).items():
                rows.bootstrap_value[i, t] = value_after
            self._obs = step.obs
            self._first = step.terminated | step.truncated
            episodes += step.episodes
        fragments = rows.to_fragments(
            state_in=state_in,
            last_obs=self._obs,
            last_first=self._first,
            last_value=self._last_values(),
            weights_version=self._weights_seq_no,
            env_ids=self._env_ids,
            index=self._fragment_index,
        )
        self._fragment_index += 1
        return fragments, episodes

    def _act(self) -> tuple[dict[str, NDArray], NDArray, NDArray]:
        """One forward pass for all environments; moves their memories on."""
        decision = self._session.act(
            self._on_device(self._obs), self._on_device(self._first), explore=self.config.explore
        )
        action = {name: tokens[:, 0].cpu().numpy() for name, tokens in decision.actions.items()}
        return action, decision.log_prob_b.cpu().numpy(), decision.value_b.cpu().numpy()

    def _values(self, final_obs: dict[int, NDArray[np.uint8]]) -> dict[int, float]:
        """Values of the observations that truncated episodes ended with."""
        if not final_obs:
            return {}
        rows = list(final_obs)
        values = self._session.value(
            self._on_device(np.stack(list(final_obs.values()))),
            self._on_device(np.zeros(len(rows), np.bool_)),
            rows=torch.tensor(rows, device=self._device),
        )
        return dict(zip(rows, values.tolist(), strict=True))

    def _last_values(self) -> NDArray[np.float32]:
        """Values of the observations that the next fragments will begin with."""
        values = self._session.value(self._on_device(self._obs), self._on_device(self._first))
        return values.cpu().numpy()

    def _on_device(self, array: NDArray) -> Tensor:
        return torch.from_numpy(array).to(self._device)
