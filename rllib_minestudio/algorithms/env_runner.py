"""The env runner: plays the policy in its environments and cuts what happens into fragments.

Only the observation, the action and two numbers are recorded per step. The network's memory stays
on the device, in a rollout session; it is copied once, at the start of a fragment.
(RLlib's own runner stores every output of the module at every step: with VPT's memory that is
megabytes per step.)

Each environment is at its own step of its own fragment; the policy acts for whichever are ready.
"""

from __future__ import annotations

import copy
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.utils.metrics import SAMPLE_TIMER, WEIGHTS_SEQ_NO
from torch import Tensor

from rllib_minestudio.algorithms.env_pool import EnvPoolOptions, Episode, EpisodeSource, PoolStep
from rllib_minestudio.algorithms.env_pool.base import IMAGE
from rllib_minestudio.algorithms.env_pool.seeds import derived_seed
from rllib_minestudio.algorithms.envs import env_makers, make_pool, was_reconstructed
from rllib_minestudio.algorithms.fragment import Fragment, FragmentRows
from rllib_minestudio.algorithms.prior_latents import (
    PriorLatents,
    PriorWeights,
    build_prior_latents,
)
from rllib_minestudio.algorithms.rollout import (
    INFERENCE,
    PRIOR,
    SAMPLING,
    WAITING,
    Observed,
    Rollout,
    RolloutReport,
    StageTimes,
    refuse_arguments,
)
from rllib_minestudio.algorithms.runner_callbacks import RunnerCallbacks

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.config import MineStudioPPOConfig


class MineStudioEnvRunner(SingleAgentEnvRunner):
    """Collects as many fragments per call as it has environments.

    Attributes:
        episode_source: Chooses seed and options of every reset; None leaves each environment its
            own sequence of episodes. For subclasses.
    """

    config: MineStudioPPOConfig
    env: Any = None
    episode_source: EpisodeSource | None = None

    _episodes: list[Episode]
    _times: StageTimes
    _incarnation = ""
    _weights_number = 0
    _weights_reachable = True
    _prior_number = 0
    _prior: PriorLatents | None = None

    def make_env(self) -> None:
        """Build the environments; each derives its own episodes from its two indices."""
        recreated = self.env is not None or was_reconstructed()
        if self.env is not None:
            self.env.close()
        if recreated:  # its fragments are not the continuation of those that were lost
            self._incarnation = f".{secrets.token_hex(4)}"
        options = EnvPoolOptions(**self.config.env_pool)
        self._hooks = RunnerCallbacks(self)
        self.env = make_pool(
            self.config.env,
            self.config.env_config,
            self.env_makers(),
            options=options,
            gamma=self.config.gamma,
            seed=derived_seed(self.config.seed or 0, self.worker_index or 0),
            recreated=recreated,
            episode_source=self.episode_source,
            infos=self._hooks.infos,
        )
        self.num_envs, self._min_ready = self.env.num_envs, options.inference_batch_size
        self._needs_initial_reset = True
        self._hooks.environment_created()

    def env_makers(self) -> list[Callable[[], gym.Env]]:
        """One constructor per environment; it is called in the environment's own process."""
        return env_makers(self.config, self.worker_index or 0, self.num_workers or 0)

    def sample(self, *, aligned: bool | None = None, **others: Any) -> Rollout:
        """Play until as many fragments are complete as there are environments.

        Episodes, and fragments that are not complete, run on from call to call.

        Args:
            aligned: Whether every environment completes one fragment, and waits for the others
                when it has: then no fragment is begun under one version of the weights and
                completed under another. Otherwise the fragments are of whichever environments
                were fastest. None: only if fragments may not be stale at all.
            others: RLlib's own, such as `num_episodes`, are refused.
        """
        refuse_arguments(others)
        if aligned is None:
            aligned = self.config.max_staleness == 0
        if self._needs_initial_reset:
            self._start()
        with self.metrics.log_time(SAMPLE_TIMER), self._times.measure(SAMPLING):
            fragments = self._collect(aligned)
        self._hooks.sample_end(fragments)
        episodes, self._episodes = self._episodes, []
        restarts = dict(self.env.restarts)
        self.env.restarts.clear()
        self.metrics.log_value(WEIGHTS_SEQ_NO, self._weights_seq_no, window=1)
        self._increase_sampled_metrics(sum(map(len, fragments)), len(episodes))
        report = RolloutReport(
            fragments=[fragment.metadata for fragment in fragments],
            episodes=episodes,
            env_restarts=restarts,
            metrics=self.get_metrics(),
            seconds=self._times.take(),
            weights_number=self._weights_number,
            weights_reachable=self._weights_reachable,
            incarnation=self._incarnation,
        )
        return Rollout(report, fragments)

    def rollout(self, weights: Any, aligned: bool) -> tuple[RolloutReport | Fragment, ...]:
        """Pull the newest weights, then `sample`; for calls with a return value per fragment.

        Args:
            weights: A `WeightsSource`.
            aligned: As in `sample`.

        Returns:
            The report, and `num_envs` fragments.
        """
        publication = weights.pull(self._weights_number)
        if publication is not None:
            self.set_state(publication.state)
            self._weights_number = publication.number
        prior = weights.pull_prior(self._prior_number)
        if prior is not None:
            self.set_prior(prior.weights)
            self._prior_number = prior.number
        self._weights_reachable = weights.reachable
        report, fragments = self.sample(aligned=aligned)
        return report, *fragments

    def set_state(self, state: dict[str, Any]) -> None:
        """Load weights whatever their version: a run may be rolled back to older ones."""
        if COMPONENT_RL_MODULE in state:
            self._weights_seq_no = 0
        super().set_state(state)

    def set_prior(self, weights: PriorWeights) -> None:
        """Load the prior's weights; without any, fragments carry no latents of it."""
        if self._prior is None:
            network = copy.deepcopy(self.module.network)
            self._prior = build_prior_latents(self.config, network, self.num_envs, weights)
        else:
            self._prior.load(weights)

    # ---------------------------------------------------------------- the loop

    def _start(self) -> None:
        """First episodes, empty memories."""
        self.env.reset()
        self._session = self.module.make_rollout_session(self.num_envs)
        self._rows = FragmentRows(
            self.num_envs,
            self.config.rollout_fragment_length,
            self.env.single_observation_space[IMAGE].shape,
        )
        self._env_ids = [
            f"{self.worker_index or 0}-{i}{self._incarnation}" for i in range(self.num_envs)
        ]
        self._indices = [0] * self.num_envs
        self._held: list[Observed] = []
        self._without_prior: dict[int, Fragment] = {}
        self._complete: deque[Fragment] = deque()
        self._episodes = []
        self._times = StageTimes()
        self._state_in = self._states(np.arange(self.num_envs))
        if self.config.decorrelation_steps:
            self._decorrelate()
        self._needs_initial_reset = False

    def _decorrelate(self) -> None:
        """Let every environment play a random number of steps of which nothing is recorded.

        Environments that start together and have the same time limit would otherwise be in the
        same part of their episodes for ever. The memory of these steps is not kept: the prior,
        which never sees them, could not have it, and would be another policy without.
        """
        rng = np.random.default_rng((self.config.seed or 0, self.worker_index or 0))
        left = rng.integers(self.config.decorrelation_steps + 1, size=self.num_envs)
        while sum(len(held.rows) for held in self._held) < self.num_envs:
            seen = self._see(self.env.recv(self._min_ready))
            plays = left[seen.rows] > 0
            done = seen.select(~plays)
            self._hold(done._replace(first=np.ones_like(done.first)))
            seen = seen.select(plays)
            if len(seen.rows):
                left[seen.rows] -= 1
                self._act(seen)

    def _collect(self, aligned: bool) -> list[Fragment]:
        """Let the environments play until enough fragments are complete; see `sample`."""
        if self._held:
            held, self._held = self._held, []
            self._act(Observed.join(held))
        while len(self._complete) < self.num_envs:
            with self._times.measure(WAITING):
                step = self.env.recv(self._min_ready)
            complete = self._record(step)
            seen = self._see(step)
            if aligned:
                self._hold(seen.select(complete))
                seen = seen.select(~complete)
            if len(self._complete) + len(self._without_prior) >= self.num_envs:
                self._hold(seen)  # the next call acts, with newer weights
            elif len(seen.rows):
                self._act(seen)
            self._finish_fragments()  # while the environments play
        fragments = [self._complete.popleft() for _ in range(self.num_envs)]
        if aligned:  # who finished first is chance
            fragments.sort(key=lambda fragment: self._env_ids.index(fragment.env_id))
        return fragments

    def _see(self, step: PoolStep) -> Observed:
        """What the environments show, and note the episodes that they ended."""
        if self._hooks.follows_episodes:
            self._hooks.tell(step)
        self._episodes += step.episodes
        ended = step.terminated | step.truncated
        return Observed(step.rows, step.obs, ended | ~step.answered)

    def _hold(self, seen: Observed) -> None:
        """Keep what environments see until the next call; `recv` will overwrite it."""
        if len(seen.rows):
            self._held.append(seen._replace(obs=seen.obs.copy()))

    def _act(self, seen: Observed) -> None:
        """One forward pass; moves the environments' memories on and sends them the actions."""
        with self._times.measure(INFERENCE):
            decision = self._session.act(
                self._on_device(seen.obs),
                self._on_device(seen.first),
                rows=self._which(seen.rows),
                explore=self.config.explore,
            )
            action = {name: tokens[:, 0].cpu().numpy() for name, tokens in decision.actions.items()}
            logp, value = decision.log_prob_b.cpu().numpy(), decision.value_b.cpu().numpy()
        self.env.send(seen.rows, action)
        self._rows.write_decision(
            seen.rows,
            obs=seen.obs,
            first=seen.first,
            action=action,
            logp=logp,
            value=value,
            weights_version=self._weights_seq_no,
        )

    def _record(self, step: PoolStep) -> NDArray[np.bool_]:
        """Write down what came of the actions.

        Returns:
            (k,) whether an environment completed its fragment.
        """
        complete = np.zeros(len(step.rows), np.bool_)
        answered = step.answered
        complete[answered] = self._rows.write_outcome(
            step.rows[answered],
            reward=step.reward[answered],
            terminated=step.terminated[answered],
            truncated=step.truncated[answered],
            final_obs=step.final_obs,
            bootstrap_value=self._final_values(step.final_obs),
        )
        if complete.any():
            self._take_fragments(step, np.flatnonzero(complete))
        return complete

    def _take_fragments(self, step: PoolStep, positions: NDArray[np.int64]) -> None:
        """Hand out complete fragments; `positions` are those of their environments in `step`."""
        rows, obs = step.rows[positions], step.obs[positions]
        first = (step.terminated | step.truncated)[positions]
        values, states = self._values(rows, obs, first), self._states(rows)
        for k, row in enumerate(rows.tolist()):
            fragment = self._rows.take(
                row,
                state_in=self._state_in[row],
                last_obs=obs[k],
                last_first=bool(first[k]),
                last_value=float(values[k]),
                env_id=self._env_ids[row],
                index=self._indices[row],
            )
            self._state_in[row] = states[k]
            self._indices[row] += 1
            self._without_prior[row] = fragment

    def _finish_fragments(self) -> None:
        """Add the prior's latents to complete fragments, if there is a prior."""
        rows, fragments = list(self._without_prior), list(self._without_prior.values())
        self._without_prior = {}
        if self._prior is not None and fragments:
            with self._times.measure(PRIOR):
                latents = self._prior.advance(
                    rows, [f.obs for f in fragments], [f.first for f in fragments]
                )
            version = self._prior.version
            fragments = [
                replace(fragment, prior_latent=latent, prior_version=version)
                for fragment, latent in zip(fragments, latents, strict=True)
            ]
        self._complete += fragments

    def _final_values(self, final_obs: dict[int, NDArray[np.uint8]]) -> dict[int, float]:
        """Values of the observations that truncated episodes ended with."""
        if not final_obs:
            return {}
        rows = np.array(sorted(final_obs), np.int64)
        obs = np.stack([final_obs[row] for row in rows.tolist()])
        values = self._values(rows, obs, np.zeros(len(rows), np.bool_))
        return dict(zip(rows.tolist(), values.tolist(), strict=True))

    def _values(self, rows: NDArray, obs: NDArray, first: NDArray) -> NDArray[np.float32]:
        """Values (k,) of observations; memories stay as they are."""
        with self._times.measure(INFERENCE):
            values = self._session.value(
                self._on_device(obs), self._on_device(first), rows=self._which(rows)
            )
            return values.cpu().numpy()

    def _states(self, rows: NDArray[np.int64]) -> list[dict[str, NDArray]]:
        """Copies of the memories of k environments, each without a batch axis."""
        state = self._session.state(self._which(rows))._asdict()
        arrays = {name: tensor.cpu().numpy() for name, tensor in state.items()}
        return [{name: array[k] for name, array in arrays.items()} for k in range(len(rows))]

    def _which(self, rows: NDArray[np.int64]) -> Tensor | None:
        """The environments as the rollout session wants them: all is faster than some."""
        return None if len(rows) == self.num_envs else self._on_device(rows)

    def _on_device(self, array: NDArray) -> Tensor:
        return torch.from_numpy(array).to(self._device)
