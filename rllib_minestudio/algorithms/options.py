"""The options of MineStudioPPO and MineStudioBC, each declared once."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import yaml

from rllib_minestudio.foundation.options import (
    EVER,
    MANY,
    Bounds,
    broken_rule,
    default_of,
    group_of,
    like,
    option,
    option_group,
    sentence_of,
    value_problems,
)

# -------------------------------------------------------------------------- the options of the pool
# `env_pool` in the algorithm's config.

AUTO, INLINE, PROCESS = "auto", "inline", "process"
MODES = (AUTO, INLINE, PROCESS)

_SECONDS: dict[str, Any] = {
    "least": 1e-300,
    "most": sys.float_info.max,
    "wording": "positive seconds",
}


@dataclass(frozen=True, kw_only=True)
class EnvPoolOptions:
    """How environments are run."""

    mode: str = option(
        AUTO,
        "`inline` runs environments one after the other in the env runner's own process; "
        "`process` runs each in a process of its own, which may die or hang without harm; `auto` "
        "is inline for the embedded engine and for gymnasium's own environments, and otherwise "
        "process.",
        choices=MODES,
    )
    inference_batch_size: int = option(
        1,
        "The policy acts as soon as this many environments are ready, for all that are ready then. "
        "Inline, all are always ready.",
        least=1,
    )
    start_timeout_s: float = option(
        600.0, "Building an environment may take this many seconds (mode `process`).", **_SECONDS
    )
    reset_timeout_s: float = option(
        300.0, "A reset may take this many seconds (mode `process`).", **_SECONDS
    )
    step_timeout_s: float = option(
        60.0, "A step may take this many seconds (mode `process`).", **_SECONDS
    )
    max_restarts_per_hour: int = option(
        20, "An environment may fail this many times within an hour; once more ends the run."
    )
    restart_interval: float | None = option(
        None,
        "An environment's process is replaced after this many seconds, at the end of an episode, "
        "as a guard against leaks; null: it never is (mode `process`).",
        **_SECONDS,
    )


# ------------------------------------------------------------- options that may change in training
# `lr`, `kl_coeff` and `entropy_coeff` are numbers, or schedules in RLlib's form.

Schedule = float | list[list[float]] | list[tuple[float, float]]
"""A number, or pairs of an environment step and the number reached there."""

_STEPS = Bounds(most=float(EVER))


def is_schedule(value: Any) -> bool:
    """Whether an option changes with the environment steps, rather than being one number."""
    return isinstance(value, list | tuple)


def schedule_problems(name: str, value: Any, *, most: float) -> list[str]:
    """Check an option that is a number, or a schedule [[environment step, number], ...].

    Args:
        name: The option's name.
        value: The number or the schedule.
        most: Upper bound of all numbers; the lower one is 0.

    Returns:
        One sentence per problem.
    """
    bounds = Bounds(most=most)
    if not is_schedule(value):
        return value_problems(name, value, float, False, bounds)
    problems = []
    steps = []
    for i, pair in enumerate(value):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            rule = "must be a number, or a schedule: a list of [environment step, number]"
            return [broken_rule(name, value, rule)]
        problems += value_problems(f"{name}[{i}][0]", pair[0], float, False, _STEPS)
        problems += value_problems(f"{name}[{i}][1]", pair[1], float, False, bounds)
        steps.append(pair[0])
    if not problems and (not steps or steps[0] != 0 or steps != sorted(set(steps))):
        rule = "must, if it is a schedule, begin at step 0 and have rising steps"
        problems.append(broken_rule(name, value, rule))
    return problems


_rate_problems = partial(schedule_problems, most=1e6)
_coefficient_problems = partial(schedule_problems, most=1e9)


# ----------------------------------- the options that MineStudioPPO and MineStudioBC have in common


def _class_problems(name: str, value: Any) -> list[str]:
    """Check the type only; whether the policy exists is checked together with the model."""
    if isinstance(value, str | type):
        return []
    return [broken_rule(name, value, "must be the name or import path of a policy's class")]


@dataclass(kw_only=True, eq=False, repr=False)
class SharedOptions:
    """Which policy is trained, and how, independent of the objective.

    Mixed into RLlib's configs. Env runners, learners and data are annotated with these options
    only, because a config imports those classes, but read RLlib's settings from the same object.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    module_class: str = option(
        AUTO,
        "The policy is `VPT`, `ConvGRU`, or a `RecurrentRLModule` of your own, given by its import "
        "path (docs/policies.md); `model` holds its options. `auto` is VPT in MineStudio's "
        "environment and in others with its frames and tokens, and ConvGRU everywhere else.",
        check=_class_problems,
    )
    lr: Schedule = option(
        2.0e-5,
        "Learning rate of AdamW: a number, or a schedule [[environment step, rate], ...].",
        check=_rate_problems,
    )
    lr_factors: dict[str, float] = option(
        {},
        "Parameters whose name matches a shell pattern learn at `lr` times its factor; the first "
        "matching pattern applies. (To exclude parts from training, use the model's `freeze`.)",
    )
    weight_decay: float = option(0.04, "Weight decay of AdamW.", most=1e9)
    adam_eps: float = option(1.0e-8, "Epsilon in the denominator of AdamW.", least=1e-30, most=1e9)
    grad_clip: float | None = option(
        5.0, "Gradients are clipped to this global norm; null or 0 turns clipping off."
    )
    max_nonfinite_minibatches: int = option(
        10,
        "This many minibatches in a row with a NaN or infinite loss end the run; fewer are skipped "
        "and counted.",
        least=1,
    )
    context_length: int = option(
        64,
        "Backpropagation through time is truncated to chunks of this many steps; the memory is "
        "carried from chunk to chunk.",
        least=1,
        most=MANY,
    )
    gamma: float = option(0.99, "Rewards are discounted by this factor per step.", most=1.0)


@dataclass(kw_only=True, eq=False, repr=False)
class ModelArgument:
    """The additional argument `model` of `training`, which becomes `model_config`."""

    model: dict[str, Any] = option(
        {},
        "The policy has these options: `weights` (a checkpoint: see `rllib model --help`), "
        "`freeze` (patterns on parameter names), and those of its network, whose sizes `weights` "
        "decide; VPT's are `preset` (`1x`, `2x`, `3x`, `nano`, or null) and the fields of "
        "`VPTConfig`. Keys are added to those that were set before.",
    )


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
    """An auxiliary loss on recorded episodes, in addition to PPO's."""

    recordings: str | None = option(
        None,
        "Recorded episodes are read from this folder and its subfolders (`rllib record` writes "
        "them); null: no such loss.",
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
    """MineStudioPPO's own options, and RLlib options for which it has its own default."""

    gamma: float = like(SharedOptions, "gamma", default=0.999)
    num_epochs: int = option(
        1, "An iteration passes over its fragments this many times.", least=1, most=10_000
    )

    # The prior, to which the KL term holds the policy.
    prior: str | None = option(
        INITIAL_PRIOR,
        "The KL term holds the policy to these weights: `initial`, those that training starts "
        "from; a checkpoint of the same size, as `weights` of `model`; or null for no KL term.",
        wording="'initial', a checkpoint",
    )
    kl_coeff: Schedule = option(
        0.2,
        "The KL term, KL(pi || prior) in nats, starts with this weight; or a schedule "
        "[[environment step, weight], ...].",
        check=_coefficient_problems,
    )
    kl_decay: float = option(
        0.9995,
        "The weight of the KL term is multiplied by this factor per iteration, unless `kl_coeff` "
        "is a schedule or there is a `kl_target`.",
        most=1.0,
    )
    kl_target: float | None = option(
        None,
        "The weight of the KL term rises while the KL to the prior is above this many nats per "
        "step, and falls while it is below; null: it follows `kl_coeff` and `kl_decay`.",
        least=1e-9,
        most=1e9,
    )
    kl_target_rate: float = option(
        0.1,
        "With a `kl_target`, an iteration changes the weight of the KL term by this share of the "
        "KL's relative error, which counts as at most 0.2.",
        least=1e-9,
        most=1.0,
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
    entropy_coeff: Schedule = option(
        0.0,
        "The entropy bonus starts with this weight; or a schedule "
        "[[environment step, weight], ...].",
        check=_coefficient_problems,
    )
    entropy_decay: float = option(
        1.0,
        "The weight of the entropy bonus is multiplied by this factor per iteration, unless "
        "`entropy_coeff` is a schedule.",
        most=1.0,
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
        "During value warmup only the value head learns. Otherwise all weights do, as in "
        "MineStudio, and the KL term holds the policy.",
    )
    zero_init_value_head: bool = option(
        True, "The value head starts at zero, its statistics included, whatever the weights say."
    )
    behaviour_cloning: dict[str, Any] = option_group(
        BehaviourCloningOptions,
        "An auxiliary loss holds the policy to recorded episodes. Keys are added to the defaults.",
    )

    # Collecting the data, and dividing it into iterations and minibatches.
    env_pool: dict[str, Any] = option_group(
        EnvPoolOptions,
        "Controls how environments are run. Keys are added to the defaults.",
    )
    decorrelation_steps: int = option(
        0,
        "Before anything is recorded, the policy plays up to this many steps in each environment, "
        "drawn at random, so that episodes do not all begin and end together. Set it to the length "
        "of an episode.",
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
        "The state from which a lost remote learner is rebuilt is saved when this many iterations "
        "have passed since the last time; at most this many are lost with it. Saving it costs a "
        "copy of weights and optimizer (3 GB for VPT 2x).",
        least=1,
    )
    learner_state_interval_s: float = option(
        0.0,
        "So many seconds must have passed since the last state as well: for large networks, whose "
        "state takes a while to be copied. Up to this many seconds of training may be lost with a "
        "learner.",
    )
    publication_interval: int = option(
        1,
        "Weights are published to the env runners when this many iterations have passed since the "
        "last time. Staleness counts publications.",
        least=1,
    )
    publication_interval_s: float = option(
        0.0,
        "So many seconds must have passed since the last publication as well: for large networks, "
        "whose weights take a while to reach every node.",
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
        """The greatest staleness of a fragment that is trained on."""
        return self.buffer_limits.max_staleness

    @property
    def fragments_per_sequence(self) -> int:
        """Consecutive fragments of one environment that are trained on as one sequence.

        The option keeps MineStudio's name; everywhere else, a chunk is a piece of truncated
        backpropagation through time.
        """
        return self.buffer_limits.fragments_per_chunk


@dataclass(kw_only=True, eq=False, repr=False)
class PPOTraining(PPOOptions, ModelArgument):
    """What `MineStudioPPOConfig.training` takes."""


# ---------------------------------------------------------------------- the options of MineStudioBC


@dataclass(kw_only=True, eq=False, repr=False)
class CloningOptions(SharedOptions):
    """MineStudioBC's own options, and RLlib options for which it has its own default."""

    lr: Schedule = like(SharedOptions, "lr", default=1.0e-3)
    weight_decay: float = like(SharedOptions, "weight_decay", default=0.01)

    window_length: int = option(
        128, "This many consecutive steps of an episode are imitated together.", least=1, most=MANY
    )
    burn_in: int | None = option(
        None,
        "This many frames before a window rebuild the memory; null: as many as the network "
        "remembers.",
        most=MANY,
    )
    carry_memory: bool = option(
        False,
        "Each window of a batch continues the one at its place in the previous batch, from the "
        "memory that one left: the policy learns with memories as old as those it plays with. "
        "Only whole episodes are shuffled, of which `windows_per_batch` are held in memory. "
        "Otherwise windows are drawn at random, each with a memory of `burn_in` frames.",
    )
    windows_per_batch: int = option(
        8, "An optimizer step averages over this many windows.", least=1, most=MANY
    )
    shuffle_among: int = option(
        64,
        "Each window is drawn from among this many decoded ones, which are held in memory.",
        most=MANY,
    )
    windows_per_read: int = option(
        8,
        "This many consecutive windows of an episode are decoded together. Such stretches are "
        "shuffled; 1 shuffles single windows, for which the frames before each are decoded again. "
        "Has no effect with `carry_memory`.",
        least=1,
        most=MANY,
    )
    num_readers: int = option(
        1, "This many tasks of Ray Data decode episodes at the same time.", least=1, most=10_000
    )
    still_camera: bool = option(
        True,
        "Whether the camera's term of the loss also counts steps in which the camera does not "
        "turn. With false, as in MineStudio's auxiliary loss, the camera's head learns only where "
        "to turn, and the buttons alone say whether.",
    )
    max_null_run: int | None = option(
        None,
        "Where the demonstrator does nothing for longer than this many consecutive steps, the rest "
        "of these null actions is cut out of the episode together with its frames. null: nothing "
        "is cut out. (OpenAI's loader for VPT cuts out all null actions: 0.)",
        most=MANY,
    )
    validation_fraction: float = option(
        0.1, "This share of the episodes is held out for validation.", most=1.0
    )
    validation_interval: int = option(
        10, "The validation loss is computed every this many iterations.", least=1
    )


@dataclass(kw_only=True, eq=False, repr=False)
class CloningTraining(CloningOptions, ModelArgument):
    """What `MineStudioBCConfig.training` takes."""


# ----------------------------------------------- the options as listed by `rllib train file --help`
# The options' page of docs/ has the same list as a table (tools/reference).

ALGORITHMS = {"MineStudioPPO": PPOTraining, "MineStudioBC": CloningTraining}
"""Name of an algorithm -> what its config's `training` takes."""


def help_text() -> str:
    """Return the options of MineStudioPPO as `--help` shows them."""
    title = "options of MineStudioPPO, below `config` (for MineStudioBC's, see docs/reference.md):"
    return "\n".join([title, *_help_lines(PPOTraining)])


def _help_lines(options: type, prefix: str = "") -> list[str]:
    lines = []
    for declared in fields(options):
        group = group_of(declared)
        value = "" if group is not None else f"={as_yaml(default_of(declared))}"
        sentence = textwrap.wrap(sentence_of(declared), 92)
        lines += [f"  {prefix}{declared.name}{value}", *(f"      {line}" for line in sentence)]
        if group is not None:
            lines += _help_lines(group, f"{declared.name}.")
    return lines


def as_yaml(value: object) -> str:
    """Return a value as it is written in an experiment file."""
    value = list(value) if isinstance(value, tuple) else value
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()
