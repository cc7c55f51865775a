"""The options of MineStudioPPO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rllib_minestudio.algorithms.options.env_pool import EnvPoolOptions
from rllib_minestudio.algorithms.options.shared import ModelArgument, SharedOptions
from rllib_minestudio.option_fields import MANY, like, option, option_group

INITIAL_PRIOR = "initial"
"""Value of `prior`: the weights that training starts from."""

DECOUPLED, RECOMPUTE = "decoupled", "recompute"
"""Values of `off_policy_correction`."""


@dataclass(frozen=True, kw_only=True)
class ReplayBufferOptions:
    """Which fragments are kept, and for how long."""

    max_fragments: int | None = option(
        None,
        "The buffer holds this many fragments at most; null: as many as can be trained on before "
        "they are too stale. Remote env runners get about an iteration ahead, "
        "and further only while the learner has to wait for them.",
        least=1,
    )
    max_reuse: int = option(1, "A fragment is trained on this many times at most.", least=1)
    max_staleness: int = option(
        2, "A fragment is dropped when its weights are more than this many versions old."
    )
    fragments_per_chunk: int = option(
        1,
        "This many consecutive fragments of one environment are sampled together, and trained on "
        "as one sequence.",
        least=1,
    )


@dataclass(frozen=True, kw_only=True)
class BehaviourCloningOptions:
    """An auxiliary loss on recorded episodes, beside PPO's."""

    recordings: str | None = option(
        None,
        "Recorded episodes are looked for in this folder and below (`rllib record` writes them); "
        "null: there is no such loss.",
        wording="a folder",
    )
    coeff: float = option(0.1, "The loss has this weight.")
    fragments_per_minibatch: int = option(
        1, "This many windows of episodes make a minibatch.", least=1
    )
    fragment_length: int = option(
        64,
        "This many steps of each window are imitated; as many frames as the network remembers come "
        "before them, to rebuild its memory.",
        least=1,
    )
    shuffle_among: int = option(
        64, "This many windows are held in memory, and each is drawn from among them."
    )


@dataclass(kw_only=True, eq=False, repr=False)
class PPOOptions(SharedOptions):
    """MineStudioPPO's own options, and those of RLlib's for which it has a default of its own."""

    gamma: float = like(SharedOptions, "gamma", default=0.999)
    num_epochs: int = option(
        1, "An iteration passes over its fragments this many times.", least=1, most=10_000
    )

    # The policy that the KL term holds the agent to.
    prior: str | None = option(
        INITIAL_PRIOR,
        "The KL term holds the policy to these weights: `initial`, those that training starts "
        "from; a checkpoint of the same size, as `weights` of `model`; or null for no KL term.",
        wording="'initial', a checkpoint",
    )
    kl_coeff: float = option(
        0.2, "The KL term, KL(pi || prior) in nats, starts with this weight.", most=1e9
    )
    kl_decay: float = option(
        0.9995, "The weight of the KL term is multiplied by this factor per iteration.", most=1.0
    )
    carry_prior_state: bool = option(
        True,
        "The prior's memory is carried from fragment to fragment; otherwise each begins with none.",
    )
    prior_update_interval: int = option(
        0,
        "The prior takes over the policy's weights each time this many iterations have passed; 0: "
        "it never does.",
    )

    # The other terms of the loss.
    reward_clip: float | None = option(
        None,
        "Rewards are clipped beyond this many times their usual size, which is the root mean "
        "square of those that are not 0; null: never. Rewards beyond 100 times that size are "
        "counted, and the first is logged, in any case.",
        least=1,
        most=1e9,
    )
    clip_param: float = option(
        0.2, "PPO's probability ratio is clipped this far from 1.", least=1e-12
    )
    vf_coeff: float = option(0.5, "The value loss has this weight.", most=1e9)
    entropy_coeff: float = option(0.0, "The entropy bonus starts with this weight.", most=1e9)
    entropy_decay: float = option(
        1.0, "The weight of the entropy bonus is multiplied by this factor per iteration.", most=1.0
    )
    log_ratio_clamp: float = option(
        50.0, "The log of pi / proximal policy is cut off above this bound.", least=1e-12
    )
    lambda_: float = option(0.95, "The trace of GAE decays by this factor per step.", most=1.0)
    vf_warmup_iterations: int = option(
        0, "For this many iterations only the value function is trained; no weights are published."
    )
    vf_warmup_head_only: bool = option(
        False,
        "In these iterations only the value head learns. Otherwise all weights do, as in "
        "MineStudio, and the KL term holds the policy.",
    )
    zero_init_value_head: bool = option(
        True, "The value head starts at zero, its statistics included, whatever the weights say."
    )
    behaviour_cloning: dict[str, Any] = option_group(
        BehaviourCloningOptions,
        "An auxiliary loss holds the policy to recorded episodes. Keys are added to the defaults.",
    )

    # Which data are trained on, and in which portions.
    env_pool: dict[str, Any] = option_group(
        EnvPoolOptions,
        "Controls how environments are run. Keys are added to the defaults.",
    )
    decorrelation_steps: int = option(
        0,
        "Before anything is recorded, the policy plays up to this many steps in each environment, "
        "drawn at random, so that episodes do not all begin and end together. Give the length of "
        "an episode.",
        most=10**9,
    )
    fragments_per_iteration: int = option(
        32, "An iteration trains on this many fragments.", least=1, most=MANY
    )
    fragments_per_minibatch: int = option(
        1,
        "A learner takes this many fragments through one forward pass, side by side; where "
        "`replay_buffer.fragments_per_chunk` joins several, each sequence of them counts once.",
        least=1,
        most=MANY,
    )
    gradient_accumulation: int = option(
        10,
        "An optimizer step adds up the gradients of this many minibatches, of all learners "
        "together: it is the same however many learners share its work.",
        least=1,
        most=MANY,
    )
    replay_buffer: dict[str, Any] = option_group(
        ReplayBufferOptions,
        "Limits which fragments are kept, and for how long. Keys are added to the defaults.",
    )
    off_policy_correction: str = option(
        DECOUPLED,
        "Fragments from older weights are corrected in this way: `decoupled` weights them by their "
        "importance against the behaviour policy; `recompute`, MineStudio's way, ignores the "
        "behaviour policy.",
        choices=(DECOUPLED, RECOMPUTE),
    )
    importance_weight_truncation: float = option(
        2.0, "Importance weights are truncated at this bound.", least=1e-12
    )

    # Failures.
    learner_timeout_s: float = option(
        1800.0,
        "A remote learner whose update takes longer than this many seconds counts as hung, and is "
        "replaced. "
        "(For env runners, see `sample_timeout_s`.)",
        least=1e-6,
    )
    learner_state_interval: int = option(
        1,
        "The state from which a lost remote learner is rebuilt is saved each time this many "
        "iterations have passed; at most this many are lost with it. Saving it costs a copy of "
        "weights and optimizer (3 GB for VPT 2x).",
        least=1,
    )
    max_restarts_per_hour: int = option(
        60,
        "Each kind of part (env runners, learners, the weights' actor) may die or hang this many "
        "times within an hour; once more ends the run with an error.",
    )

    # The optimizer.
    lr_annealing_iterations: int | None = option(
        None,
        "`lr` falls linearly and is 0 after this many iterations; null keeps it constant. (For a "
        "schedule in environment steps, set `lr` itself.)",
        least=1,
    )
    ema_decay: float | None = option(
        None,
        "A moving average of the weights with this decay per optimizer step (such as 0.999) is "
        "kept; null keeps none. Checkpoints hold it as `policy_average/`, which can be evaluated, "
        "played and started from like `policy/`. Training plays with the weights themselves.",
        most=1.0,
    )

    @property
    def buffer_limits(self) -> ReplayBufferOptions:
        """The options of the replay buffer."""
        return ReplayBufferOptions(**self.replay_buffer)

    @property
    def max_staleness(self) -> int:
        """How many versions old a fragment's weights may be."""
        return self.buffer_limits.max_staleness

    @property
    def fragments_per_sequence(self) -> int:
        """Contiguous fragments of one environment that are trained on as one sequence.

        The option has MineStudio's name. A chunk elsewhere is a piece of truncated backpropagation
        through time.
        """
        return self.buffer_limits.fragments_per_chunk


@dataclass(kw_only=True, eq=False, repr=False)
class PPOTraining(PPOOptions, ModelArgument):
    """What `MineStudioPPOConfig.training` takes."""
