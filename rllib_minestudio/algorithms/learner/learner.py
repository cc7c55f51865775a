"""The learner: one training iteration over a batch of fragments.

A reader's path: `update` -> `_prepare` (what may be trained on; advantages, proximal policy) ->
`TrainingPass` (optimizer steps, minibatches, chunks of `context_length` with the memory carried
over) -> `compute_loss_for_module` -> one `GradientStep` per `gradient_accumulation` minibatches.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME, WEIGHTS_SEQ_NO
from torch import Tensor

from rllib_minestudio.algorithms.learner.batch import (
    FragmentLoader,
    LoadedFragments,
    MinibatchStream,
    TrainingBatch,
)
from rllib_minestudio.algorithms.learner.gradient_step import GradientStep, Peers, require_finite
from rllib_minestudio.algorithms.learner.imitation import build_cloning
from rllib_minestudio.algorithms.learner.objective import (
    LossCoefficients,
    adapted,
    annealed,
    loss_coefficients,
    objective,
)
from rllib_minestudio.algorithms.learner.policy_learner import (
    PolicyLearner,
    evaluate,
    keep_freed_memory,
)
from rllib_minestudio.algorithms.learner.training_pass import (
    IterationMetrics,
    Prepared,
    TrainingPass,
)
from rllib_minestudio.algorithms.learner.value_targets import (
    RewardScale,
    compute_targets,
    enter_value_targets,
)
from rllib_minestudio.algorithms.options import PPOOptions, Schedule
from rllib_minestudio.algorithms.prior import (
    Prior,
    PriorWatch,
    PriorWeights,
    build_prior,
    is_nowhere_else,
)
from rllib_minestudio.models.fine_tuning import WeightAverage
from rllib_minestudio.models.policy import ACTION_DIST, VALUE, RecurrentRLModule

ITERATION = "training_iteration"
PUBLISHED_VERSION = "published_version"
"""Keys of the `timesteps` that come with an update."""
PUBLISHES = "publishes"
"""Key of an update's timesteps: whether the weights after it are to be published."""
IS_PUBLISHED = "is_published"
"""Key of a learner's state: whether its weights are those that its version was published with."""
REWARD_SCALE = "reward_scale"
"""Key of a learner's state, for its `RewardScale`."""
KL_FACTOR = "kl_factor"
"""Key of a learner's state, for the factor of an adaptive KL coefficient."""


class MineStudioPPOLearner(PolicyLearner):
    """Trains a policy with MineStudioPPO's objective, alone or together with other learners."""

    config: PPOOptions
    _weights_seq_no: int

    def build(self) -> None:
        """Build the module, the optimizer and the frozen prior."""
        super().build()
        if self._device.type == "cpu":
            keep_freed_memory()
        config = self.config
        self._peers = Peers(config.num_learners, self._device)
        self._prior = build_prior(config, self.policy, self._device)
        self._prior_watch = PriorWatch()
        self._loader = FragmentLoader(join=config.fragments_per_sequence)
        self._stream = MinibatchStream(self._device)
        decay = config.ema_decay
        averaged = None if decay is None else AveragedModule(self.policy, decay)
        self._extra_state = ExtraState(self._prior if is_nowhere_else(config) else None, averaged)
        self._gradient_step = GradientStep(
            self.policy.network,
            self.get_optimizer(DEFAULT_MODULE_ID),
            hooks=self,
            max_nonfinite=config.max_nonfinite_minibatches,
            peers=self._peers,
            average=averaged.average if averaged else None,
        )
        self._cloning = build_cloning(config, self.policy, self._peers, seed=config.seed or 0)
        self._rewards = RewardScale(config.reward_clip, self._peers)
        self._passes = TrainingPass(
            self.module[DEFAULT_MODULE_ID],
            config,
            stream=self._stream,
            gradient_step=self._gradient_step,
            peers=self._peers,
            seed=config.seed or 0,
            cloning=self._cloning,
        )
        self._published_version = self._weights_seq_no
        self._is_published = True
        self._kl_factor = 1.0
        self._coefficients = LossCoefficients(policy=1.0, kl=0.0, entropy=0.0, publish=True)

    def _rate_or_schedule(self) -> Schedule | None:
        """Return None if `update` anneals over iterations: RLlib's schedules only know steps."""
        return self.config.lr if self.config.lr_annealing_iterations is None else None

    def shutdown(self) -> None:
        """Stop the threads that load ahead."""
        self._loader.close()
        self._stream.close()
        if self._cloning is not None:
            self._cloning.close()
        super().shutdown()

    # ---------------------------------------------------------------- the iteration

    def prefetch(self, training_data: TrainingData) -> None:
        """Start fetching the fragments for the update after the current one."""
        self._loader.prefetch(training_data)

    def update(
        self, *, training_data: TrainingData, timesteps: dict[str, Any], **_: Any
    ) -> dict[str, Any]:
        """Train one iteration.

        Args:
            training_data: Fragments, or references to them, sequence after sequence: each group of
                `fragments_per_sequence` is contiguous in time. All learners get equally many.
            timesteps: Has `training_iteration`, the number of finished iterations; RLlib's count of
                environment steps, for the learning rate's schedule; and `published_version`, the
                version of the weights that env runners act with (default: as implied by this
                learner's own updates); and `publishes`, whether the weights after the update are
                published (default: outside of value warmup). Versions count publications: without
                one, the weights change and the version does not.

        Returns:
            The metrics of the iteration.

        Raises:
            NonFiniteLossError: After `max_nonfinite_minibatches` in a row.
            FragmentsLostError: If none of the fragments could be fetched.
        """
        self._check_is_built()
        self.before_gradient_based_update(timesteps=timesteps)
        iteration = timesteps[ITERATION]
        self._follow_schedules(iteration, timesteps)
        collected = self._collected = IterationMetrics(self._peers)
        with collected.timed("fetch"):
            loaded = self._loader.load(training_data)
        collected.scalars["prefetched"] = float(loaded.prefetched)
        self._follow_published(int(timesteps.get(PUBLISHED_VERSION, self._published_version)))
        with collected.timed("targets"):
            prepared = self._prepare(loaded)
        with collected.timed("train"):
            self._passes.run(prepared, self.learn_from_chunk, collected, iteration=iteration)
        self._is_published = self._coefficients.publish and timesteps.get(PUBLISHES, True)
        if self._is_published:
            self._weights_seq_no += 1
            self._published_version = self._weights_seq_no
        if self._coefficients.publish:
            self._adapt_kl_factor()
        self._update_prior(iteration + 1)
        collected.scalars.update(
            kl_coeff=self._coefficients.kl,
            curr_entropy_coeff=self._coefficients.entropy,
            weights_version=self._weights_seq_no,
        )
        collected.log_to(self.metrics, steps=int(prepared.targets.usable_bt.sum()))
        if self._prior is not None:
            self._prior_watch.note(collected.kl_to_prior(), iteration, self.config)
        self.after_gradient_based_update(timesteps=timesteps)
        return self.metrics.reduce()

    def _follow_schedules(self, iteration: int, timesteps: dict[str, Any]) -> None:
        """Set the iteration's learning rate, loss coefficients, and learning parameters."""
        config = self.config
        if config.lr_annealing_iterations is not None:
            assert not isinstance(config.lr, list)  # ensured by `validate`
            lr = annealed(config.lr, iteration, config.lr_annealing_iterations)
            self._set_optimizer_lr(self.get_optimizer(DEFAULT_MODULE_ID), lr)
        self._coefficients = loss_coefficients(
            iteration,
            config,
            env_steps=timesteps.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0),
            kl_factor=self._kl_factor,
        )
        head_only = config.vf_warmup_head_only and not self._coefficients.publish
        value_head = self.policy.value_head
        self._gradient_step.only = frozenset(value_head.parameters()) if head_only else None

    def _adapt_kl_factor(self) -> None:
        """Let the KL coefficient of the next iteration follow `kl_target`."""
        config = self.config
        if config.kl_target is not None:
            kl = self._collected.kl_to_prior()
            self._kl_factor = adapted(self._kl_factor, kl, config.kl_target, config.kl_target_rate)

    def _follow_published(self, published_version: int) -> None:
        """Note the version of the weights that env runners act with.

        If this learner was restored to a state from before the last publication, its weights count
        as unpublished, because different weights never share a version.
        """
        self._published_version = published_version
        if published_version > self._weights_seq_no:
            self._weights_seq_no = published_version
            self._is_published = False

    def _prepare(self, loaded: LoadedFragments) -> Prepared:
        """Compute everything that needs no gradient, once."""
        config = self.config
        judged = self._rewards.judge(loaded.sequences)
        sequences = replace(loaded.sequences, reward=judged.reward_bt)
        self._collected.counts["extreme_rewards"] += judged.extreme
        self._collected.counts["clipped_rewards"] += judged.clipped
        self._gradient_step.suspect = self._rewards.told
        targets = compute_targets(
            sequences,
            excluded=self._exclude(loaded),
            evaluate=partial(
                evaluate,
                self.policy,
                stream=self._stream,
                context_length=config.context_length,
                batch_size=config.fragments_per_minibatch,
            ),
            current_version=self._weights_seq_no if self._is_published else None,
            options=config,
            total=self._peers.total,
        )
        self._collected.add_targets(targets)
        enter_value_targets(
            self.policy.value_head.normalizer, targets, config, total=self._peers.total
        )
        counts, join = self._collected.counts, config.fragments_per_sequence
        counts["recomputed_fragments"] += targets.num_evaluated * join
        counts["dropped_nonfinite"] += int(targets.nonfinite_b.sum()) * join
        if self._prior is None:
            return Prepared(sequences, targets, None)
        counts["kl_masked_fragments"] += sum(
            not self._prior.knows(version) for version in sequences.prior_version.ravel().tolist()
        )
        return Prepared(sequences, targets, self._prior.knows)

    def _exclude(self, loaded: LoadedFragments) -> list[bool]:
        """Return for each sequence whether it was lost, or has become too stale since sampling.

        The replay buffer has checked the staleness, but weights may have been published since. As
        there, only published versions count: during value warmup, staleness does not increase.
        """
        join = self.config.fragments_per_sequence
        staleness = loaded.sequences.staleness(self._published_version)
        stale = staleness.max(axis=1) > self.config.max_staleness
        excluded = [bool(a or b) for a, b in zip(stale, loaded.lost, strict=True)]
        self._collected.counts["dropped_unreadable"] += sum(loaded.lost) * join
        self._collected.counts["dropped_stale"] += (sum(excluded) - sum(loaded.lost)) * join
        self._collected.add_staleness(staleness[~np.array(excluded)].ravel().tolist())
        return excluded

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: TrainingBatch, fwd_out: dict[str, Any]
    ) -> Tensor:
        """Return the loss of one chunk, a scalar; weight custom terms by `batch.share` as well."""
        divergence = None
        if self._prior is not None:
            assert batch.prior_latent is not None and batch.prior_version is not None
            divergence = partial(
                self._prior.divergence,
                latent_bte=batch.prior_latent,
                version_bt=batch.prior_version,
            )
        loss, parts = objective(
            distribution=fwd_out[ACTION_DIST],
            value=fwd_out[VALUE],
            batch=batch,
            value_head=self.policy.value_head,
            divergence=divergence,
            coefficients=self._coefficients,
            options=self.config,
        )
        self._collected.add(parts)
        return loss

    def _update_prior(self, iterations: int) -> None:
        """Let the prior follow the policy every `prior_update_interval` iterations."""
        interval = self.config.prior_update_interval
        if self._prior is not None and interval and iterations % interval == 0:
            self._prior.follow(self.policy, version=iterations)

    def prior_weights(self) -> PriorWeights | None:
        """Return the prior's weights for the env runners; None without a prior."""
        return None if self._prior is None else self._prior.weights()

    # ---------------------------------------------------------------- weights for env runners

    def publication(self) -> tuple[int, dict[str, Any]]:
        """Return the version of the module's weights, and the argument of `EnvRunner.set_state`.

        Raises:
            NonFiniteWeightsError: If weights are NaN or infinite.
        """
        state = self.get_state(components=COMPONENT_RL_MODULE, inference_only=True)
        version = state[WEIGHTS_SEQ_NO]
        return version, {
            COMPONENT_RL_MODULE: state[COMPONENT_RL_MODULE],
            WEIGHTS_SEQ_NO: version,
        }

    # ---------------------------------------------------------------- checkpoints

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return RLlib's state, the averaged weights, and the prior's if no file holds them.

        Everything that is saved or published comes from here.

        Raises:
            NonFiniteWeightsError: If weights or optimizer moments are NaN or infinite.
        """
        require_finite(
            self.policy.network, self.get_optimizer(DEFAULT_MODULE_ID), self._weights_seq_no
        )
        state = super().get_state(components, not_components=not_components, **kwargs)
        state[IS_PUBLISHED] = self._is_published
        state[REWARD_SCALE] = self._rewards.get_state()
        state[KL_FACTOR] = self._kl_factor
        self._extra_state.add_to(
            state,
            partial(self._check_component, components=components, not_components=not_components),
        )
        return state

    def get_checkpointable_components(self) -> list[tuple[str, Any]]:
        """Return RLlib's components and ours, each of which is saved in its own folder."""
        return super().get_checkpointable_components() + self._extra_state.components()

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state; unlike RLlib's, also one with older weights than the current ones."""
        self._weights_seq_no = 0
        super().set_state(state)
        self._published_version = self._weights_seq_no
        # Weights saved during value warmup differ from those published under the same version.
        self._is_published = state.get(IS_PUBLISHED, False)
        if REWARD_SCALE in state:
            self._rewards.set_state(state[REWARD_SCALE])
        self._kl_factor = state.get(KL_FACTOR, 1.0)
        if self._cloning is not None:
            self._cloning.begin_anew()
        self._extra_state.restore(state)


# -------------------------- additions to a learner's checkpoint: the prior and the averaged weights

COMPONENT_PRIOR = "prior"
PRIOR_VERSION = "prior_version"
COMPONENT_WEIGHT_AVERAGE = "weight_average"
AVERAGED_UPDATES = "averaged_updates"


class ExtraState:
    """The prior, if no file holds its weights, and the averaged module, in a learner's state."""

    def __init__(self, prior: Prior | None, averaged: AveragedModule | None) -> None:
        self._prior = prior
        self._averaged = averaged

    def add_to(self, state: dict[str, Any], wanted: Callable[[str], bool]) -> None:
        """Add the components for which `wanted` is true."""
        if self._prior is not None and wanted(COMPONENT_PRIOR):
            state[COMPONENT_PRIOR] = self._prior.module.get_state()
            state[PRIOR_VERSION] = self._prior.version
        if self._averaged is not None:
            state[AVERAGED_UPDATES] = self._averaged.updates
            if wanted(COMPONENT_WEIGHT_AVERAGE):
                state[COMPONENT_WEIGHT_AVERAGE] = self._averaged.module.get_state()

    def components(self) -> list[tuple[str, Any]]:
        """Return the components that a checkpoint keeps in folders of their own."""
        if self._averaged is None:
            return []
        return [(COMPONENT_WEIGHT_AVERAGE, self._averaged.module)]

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `add_to` added."""
        if self._prior is not None and COMPONENT_PRIOR in state:
            self._prior.set_state(state[COMPONENT_PRIOR], version=state[PRIOR_VERSION])
        if self._averaged is not None and AVERAGED_UPDATES in state:
            self._averaged.restore(state[AVERAGED_UPDATES], state.get(COMPONENT_WEIGHT_AVERAGE))


# ------------------------------------- the moving average of the weights, for evaluation and export


class AveragedModule:
    """A copy of the module in training, whose weights are the moving average of its weights."""

    def __init__(self, module: RecurrentRLModule, decay: float) -> None:
        self.average = WeightAverage(module.network, decay)
        self.module = copy.deepcopy(module)
        # The module shares its tensors with the average, which updates them in place.
        self.module.network.load_state_dict(dict(self.average.weights()), assign=True)

    @property
    def updates(self) -> int:
        """The number of optimizer steps in the average."""
        return self.average.state_dict()["updates"]

    def restore(self, updates: int, weights: dict[str, Any] | None) -> None:
        """Restore from a checkpoint; `weights` is None if the module is already restored."""
        if weights is not None:
            self.module.set_state(weights)
        self.average.load_state_dict({"updates": updates, "average": self.average.weights()})
