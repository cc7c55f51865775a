"""Playing the policy in environments, and cutting the steps into fragments.

Only the observation, the action and two numbers are recorded per step. The network's memory stays
on the device, in a rollout session, and is copied once per fragment, at its start. (RLlib's own
runner stores every output of the module at every step: with VPT's memory, megabytes per step.)

Each environment is at its own step of its own fragment; the policy acts for whichever are ready.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rllib_minestudio.algorithms import reporting
from rllib_minestudio.algorithms.env_pool import EnvPool, Episode, PoolStep
from rllib_minestudio.algorithms.env_pool.base import Observations, copied
from rllib_minestudio.algorithms.fragment import (
    INFERENCE,
    PRIOR,
    WAITING,
    Fragment,
    FragmentBuilder,
    Observed,
    StageTimes,
)
from rllib_minestudio.algorithms.prior import PriorLatents
from rllib_minestudio.foundation.episode_seeds import EpisodeCounts
from rllib_minestudio.foundation.observations import ObservationPart, nested
from rllib_minestudio.models.acting import RolloutSession


class FragmentCollector:
    """Collects fragments, and the episodes that end meanwhile.

    Args:
        env: The environments, which are reset.
        session: The policy's rollout session for all environments.
        counts: The episode numbers from which the environments continue.
        parts: The observation parts that the policy reads; only these are recorded.
        env_ids: Names of the environments, unique in a run.
        fragment_length: Steps of a fragment.
        min_ready: How many environments must be ready before the policy acts.
        explore: Whether actions are sampled.
        device: The policy's device.
        on_step: Called with every answer of the environments, or None.

    Attributes:
        env_ids: As given.
        prior: Adds its latents to complete fragments, or None.
        weights_version: Version of the weights that the policy acts with.
        episodes: Episodes that ended; the reader empties the list.
        times: Seconds per stage.
    """

    def __init__(
        self,
        env: EnvPool,
        session: RolloutSession,
        *,
        counts: EpisodeCounts,
        parts: Mapping[str, ObservationPart],
        env_ids: list[str],
        fragment_length: int,
        min_ready: int,
        explore: bool,
        device: torch.device,
        on_step: Callable[[PoolStep], None] | None = None,
    ) -> None:
        self.env_ids = env_ids
        self.prior: PriorLatents | None = None
        self.weights_version = 0
        self.episodes: list[Episode] = []
        self.times = StageTimes()
        self._env = env
        self._session = session
        self._num_envs = env.num_envs
        self._min_ready = min_ready
        self._explore = explore
        self._device = device
        self._on_step = on_step
        self._parts = parts
        self._fragment_length = fragment_length
        heads = list(env.single_action_space)
        self._num_heads = len(heads)
        self._builder = FragmentBuilder(self._num_envs, fragment_length, parts, heads)
        self._indices = [0] * self._num_envs
        self._held: list[Observed] = []
        self._without_prior: dict[int, Fragment] = {}
        self._complete: deque[Fragment] = deque()
        self._random: np.random.Generator | None = None
        env.reset(counts)
        self._state_in = self._states(np.arange(self._num_envs))

    def decorrelate(self, max_steps: int, rng: np.random.Generator) -> None:
        """Let every environment play a random number of steps that are not recorded.

        Otherwise environments that start together and have the same time limit would always be in
        the same part of their episodes. The memory of these steps is dropped: the prior never sees
        them, and with less memory it would be a different policy.

        Args:
            max_steps: The maximum number of steps per environment.
            rng: Draws the numbers of steps, and the actions.
        """
        left = rng.integers(max_steps + 1, size=self._num_envs)
        self._random = rng
        steps = reporting.Count("playing before recording: step", int(left.sum()))
        while sum(len(held.rows) for held in self._held) < self._num_envs:
            seen = self._see(self._env.recv(self._min_ready))
            plays = left[seen.rows] > 0
            done = seen.select(~plays)
            self._hold(done._replace(first=np.ones_like(done.first)))
            seen = seen.select(plays)
            if len(seen.rows):
                left[seen.rows] -= 1
                steps.add(len(seen.rows))
                self._act(seen)

    def collect(self, *, aligned: bool, rng: np.random.Generator) -> list[Fragment]:
        """Play until as many fragments are complete as there are environments.

        Episodes and incomplete fragments continue in the next call.

        Args:
            aligned: As in `MineStudioEnvRunner.sample`.
            rng: Draws the actions.
        """
        self._random = rng
        if self._held:
            held, self._held = self._held, []
            self._act(Observed.join(held))
        steps = reporting.Count("playing: step", self._num_envs * self._fragment_length)
        while len(self._complete) < self._num_envs:
            with self.times.measure(WAITING):
                step = self._env.recv(self._min_ready)
            complete = self._record(step)
            steps.add(len(step.rows))
            seen = self._see(step)
            if aligned:
                self._hold(seen.select(complete))
                seen = seen.select(~complete)
            if len(self._complete) + len(self._without_prior) >= self._num_envs:
                self._hold(seen)  # the next call acts, with newer weights
            elif len(seen.rows):
                self._act(seen)
            self._finish_fragments()  # while the environments play
        fragments = [self._complete.popleft() for _ in range(self._num_envs)]
        if aligned:  # one per environment, in an order that does not depend on their speed
            fragments.sort(key=lambda fragment: self.env_ids.index(fragment.env_id))
        return fragments

    # ---------------------------------------------------------------- one step

    def _see(self, step: PoolStep) -> Observed:
        """Return the environments' observations, and note the episodes that ended."""
        if self._on_step is not None:
            self._on_step(step)
        self.episodes += step.episodes
        ended = step.terminated | step.truncated
        obs = {name: step.obs[name] for name in self._parts}
        return Observed(step.rows, obs, ended | ~step.answered)

    def _hold(self, seen: Observed) -> None:
        """Keep a copy of observations until the next call, since `recv` overwrites them."""
        if len(seen.rows):
            self._held.append(seen._replace(obs=copied(seen.obs)))

    def _act(self, seen: Observed) -> None:
        """Run one forward pass, which advances the memories, and send the actions."""
        with self.times.measure(INFERENCE):
            decision = self._session.act(
                self._seen_on_device(seen.obs),
                self._on_device(seen.first),
                rows=self._which(seen.rows),
                explore=self._explore,
                uniform_bh=self._numbers(len(seen.rows)),
            )
            action = {name: tokens.cpu().numpy() for name, tokens in decision.actions.items()}
            logp, value = decision.log_prob_b.cpu().numpy(), decision.value_b.cpu().numpy()
        self._env.send(seen.rows, action)
        self._builder.write_decision(
            seen.rows,
            obs=seen.obs,
            first=seen.first,
            action=action,
            logp=logp,
            value=value,
            weights_version=self.weights_version,
            episode=np.array(self._env.playing)[seen.rows],
        )

    def _record(self, step: PoolStep) -> NDArray[np.bool_]:
        """Record the outcome of the actions.

        Returns:
            (k,) whether an environment completed its fragment.
        """
        complete = np.zeros(len(step.rows), np.bool_)
        answered = step.answered
        complete[answered] = self._builder.write_outcome(
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

    # ---------------------------------------------------------------- complete fragments

    def _take_fragments(self, step: PoolStep, positions: NDArray[np.int64]) -> None:
        """Take complete fragments; `positions` are their environments' positions in `step`."""
        rows = step.rows[positions]
        obs = {name: step.obs[name][positions] for name in self._parts}
        first = (step.terminated | step.truncated)[positions]
        values, states = self._values(rows, obs, first), self._states(rows)
        for k, row in enumerate(rows.tolist()):
            fragment = self._builder.take(
                row,
                state_in=self._state_in[row],
                last_obs={name: part[k] for name, part in obs.items()},
                last_first=bool(first[k]),
                last_value=float(values[k]),
                env_id=self.env_ids[row],
                index=self._indices[row],
            )
            self._state_in[row] = states[k]
            self._indices[row] += 1
            self._without_prior[row] = fragment

    def _finish_fragments(self) -> None:
        """Add the prior's latents to complete fragments, if there is a prior."""
        rows, fragments = list(self._without_prior), list(self._without_prior.values())
        self._without_prior = {}
        if self.prior is not None and fragments:
            with self.times.measure(PRIOR):
                latents = self.prior.advance(
                    rows, [f.obs for f in fragments], [f.first for f in fragments]
                )
            version = self.prior.version
            fragments = [
                replace(fragment, prior_latent=latent, prior_version=version)
                for fragment, latent in zip(fragments, latents, strict=True)
            ]
        self._complete += fragments

    # ---------------------------------------------------------------- the policy

    def _numbers(self, count: int) -> Tensor | None:
        """Return random numbers [count, heads] to sample actions with; None if they are not."""
        if not self._explore:
            return None
        assert self._random is not None
        return self._on_device(self._random.random((count, self._num_heads)))

    def _final_values(self, final_obs: Mapping[int, Observations]) -> dict[int, float]:
        """Return the values of the final observations of truncated episodes."""
        if not final_obs:
            return {}
        rows = np.array(sorted(final_obs), np.int64)
        obs = {
            name: np.stack([final_obs[row][name] for row in rows.tolist()]) for name in self._parts
        }
        values = self._values(rows, obs, np.zeros(len(rows), np.bool_))
        return dict(zip(rows.tolist(), values.tolist(), strict=True))

    def _values(self, rows: NDArray, obs: Observations, first: NDArray) -> NDArray[np.float32]:
        """Return the values (k,) of observations; memories stay unchanged."""
        with self.times.measure(INFERENCE):
            values = self._session.value(
                self._seen_on_device(obs), self._on_device(first), rows=self._which(rows)
            )
            return values.cpu().numpy()

    def _states(self, rows: NDArray[np.int64]) -> list[dict[str, NDArray]]:
        """Return copies of the memories of k environments, each without a batch axis."""
        state = self._session.state(self._which(rows))
        arrays = {name: tensor.cpu().numpy() for name, tensor in state.items()}
        return [{name: array[k] for name, array in arrays.items()} for k in range(len(rows))]

    def _which(self, rows: NDArray[np.int64]) -> Tensor | None:
        """Return `rows` for the rollout session; None stands for all, which is faster."""
        return None if len(rows) == self._num_envs else self._on_device(rows)

    def _seen_on_device(self, obs: Observations) -> dict[str, Any]:
        """Return observations on the policy's device, nested as it takes them."""
        return nested({name: self._on_device(part) for name, part in obs.items()})

    def _on_device(self, array: NDArray) -> Tensor:
        return torch.from_numpy(array).to(self._device)
