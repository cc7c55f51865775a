"""Which runs each erratum touched: by options, by metrics where they tell, and by revision."""

from datetime import date
from pathlib import Path

import pytest

from rllib_minestudio.algorithms import MineStudioBCConfig, MineStudioPPOConfig
from rllib_minestudio.algorithms.checkpoint_record import resolved_options
from rllib_minestudio.algorithms.options.former import FORMER_OPTIONS
from rllib_minestudio.errata import ERRATA, NUMERICS, Stage, judge

PAGE = Path(__file__).parents[1] / "docs" / "errata.md"

BOOTSTRAP, PRIOR, REMAINDER, ENTROPY, DROP, OPTIMIZER = (erratum.id for erratum in ERRATA)
REMOTE = {"num_env_runners": 2}
CUT = {"env_config": {"callbacks": [{"JudgeReset": {"time_limit": 600}}]}}
IN_PROCESSES = {"env_pool": {"mode": "process"}}
WARMUP = {"vf_warmup_iterations": 5}


def buffer(**limits):
    return {"replay_buffer": limits}


def stage(*changes, iteration=10, numerics=0, result=None, before=None):
    """What a record of a config with these options tells."""
    config = MineStudioPPOConfig()
    former = {}  # what only records of earlier versions hold
    for change in changes:
        former |= {name: change[name] for name in FORMER_OPTIONS.keys() & change.keys()}
        config.update_from_dict({n: value for n, value in change.items() if n not in former})
    return Stage(
        where=f"checkpoint_of_{iteration}",
        numerics=numerics,
        iteration=iteration,
        config={**resolved_options(config), **former},
        result=result or {},
        before=before,
    )


def verdict(erratum_id, *stages):
    return next(found for found in judge(stages) if found.erratum.id == erratum_id)


@pytest.mark.parametrize(
    ("erratum_id", "changes", "why"),
    [
        (BOOTSTRAP, [WARMUP], "vf_warmup_iterations is 5; it matters if episodes are cut"),
        (BOOTSTRAP, [WARMUP, CUT], "episodes are cut by time_limit=600"),
        (BOOTSTRAP, [WARMUP, buffer(max_staleness=0)], "vf_warmup_iterations is 5"),
        (BOOTSTRAP, [REMOTE], "num_env_runners is 2 with replay_buffer.max_staleness=2"),
        (BOOTSTRAP, [buffer(max_reuse=3)], "replay_buffer.max_reuse is 3"),
        (BOOTSTRAP, [IN_PROCESSES], "environments in processes of their own"),
        (BOOTSTRAP, [{"env_config": {"engine": "minecraft"}}], "in processes of their own"),
        (BOOTSTRAP, [{"env": "my.Env"}], "environments in processes of their own"),
        (BOOTSTRAP, [{"fragments_per_iteration": 12}], "fragments were left over"),
        (PRIOR, [REMOTE], "num_env_runners is 2: fragments were sampled at random"),
        (PRIOR, [REMOTE, {"kl_coeff": 0.0}], "only the metric kl_to_prior is wrong"),
        (PRIOR, [{"fragments_per_iteration": 12}], "not a multiple of num_envs_per_env_runner=8"),
        (PRIOR, [{"fragments_per_iteration": 2}], "fragments were left over"),  # and dropped
        (PRIOR, [{"fragments_per_iteration": 12}, buffer(max_staleness=0)], "were left over"),
        (PRIOR, [buffer(max_reuse=2), IN_PROCESSES], "fragments aged before they were sampled"),
        (PRIOR, [buffer(fragments_per_chunk=2), IN_PROCESSES], "chunks were completed unevenly"),
        (
            PRIOR,
            [REMOTE, buffer(max_staleness=0, fragments_per_chunk=2)],
            "chunks were completed unevenly",
        ),
        (
            REMAINDER,
            [],
            "make 4 optimizer step(s) per iteration, in which some fragments weighed 5",
        ),
        (REMAINDER, [{"num_learners": 2}], "make 4 optimizer step(s)"),
        (
            REMAINDER,
            [{"fragments_per_iteration": 5, "fragments_per_minibatch": 2}],
            "make 1 optimizer step(s) per iteration, in which some fragments weighed 2 times",
        ),
        (
            REMAINDER,
            [{"fragments_per_minibatch": 3, "gradient_accumulation": 10}],
            "make 2 optimizer step(s) per iteration, in which some fragments weighed 15 times",
        ),
        (ENTROPY, [WARMUP, {"entropy_coeff": 0.01}], "entropy_coeff is 0.01 and vf_warmup_iter"),
        (DROP, [WARMUP, REMOTE], "vf_warmup_iterations is 5, and num_env_runners is 2"),
        (DROP, [{"vf_warmup_iterations": 2}, REMOTE], "vf_warmup_iterations is 2"),
        (DROP, [WARMUP, buffer(max_reuse=2)], "replay_buffer.max_reuse is 2"),
    ],
)
def test_a_run_in_the_mode_was_affected(erratum_id, changes, why):
    found = verdict(erratum_id, stage(*changes))
    assert found.affected, found.why
    assert why in found.why
    assert found.where == "checkpoint_of_10"


@pytest.mark.parametrize(
    ("erratum_id", "changes", "why"),
    [
        (BOOTSTRAP, [], "vf_warmup_iterations is 0; num_env_runners=0"),
        (BOOTSTRAP, [REMOTE, buffer(max_staleness=0)], "max_staleness=0"),
        (BOOTSTRAP, [IN_PROCESSES, {"num_envs_per_env_runner": 1}], "num_env_runners=0"),
        (
            BOOTSTRAP,
            [WARMUP, {"reuse_stored_values": True}],
            "reuse_stored_values is true",
        ),
        (PRIOR, [REMOTE, {"prior": None}], "prior is null"),
        (PRIOR, [REMOTE, {"carry_prior_state": False}], "carry_prior_state is false"),
        (PRIOR, [], "num_env_runners is 0"),
        (PRIOR, [buffer(max_reuse=3)], "num_env_runners is 0"),
        (PRIOR, [IN_PROCESSES], "num_env_runners is 0"),
        (PRIOR, [{"fragments_per_iteration": 4}], "num_env_runners is 0"),  # each round in two
        (PRIOR, [REMOTE, buffer(max_staleness=0)], "num_env_runners is 2"),
        (REMAINDER, [{"gradient_accumulation": 8}], "gradient_accumulation=8 leave no remainder"),
        (REMAINDER, [{"fragments_per_iteration": 8}], "leave no remainder"),  # one step
        (REMAINDER, [{"fragments_per_iteration": 20}], "leave no remainder"),
        (REMAINDER, [{"fragments_per_iteration": 40}, buffer(fragments_per_chunk=2)], "leave no"),
        (ENTROPY, [WARMUP], "entropy_coeff is 0"),
        (ENTROPY, [{"entropy_coeff": 0.01}], "vf_warmup_iterations is 0"),
        (
            ENTROPY,
            [WARMUP, {"entropy_coeff": 0.01, "vf_warmup_head_only": True}],
            "vf_warmup_head_only is true",
        ),
        (DROP, [REMOTE], "vf_warmup_iterations is 0"),
        (DROP, [WARMUP], "let no fragment wait"),
        (DROP, [WARMUP, REMOTE, buffer(max_staleness=6)], "max_staleness=6 allows for"),
        (DROP, [REMOTE, {"vf_warmup_iterations": 10}], "vf_warmup_iterations is 10: none came to"),
        (OPTIMIZER, [], "weight_decay=0.04, adam_eps=1e-08, lr_factors={} in all records"),
    ],
)
def test_a_run_in_another_mode_was_not(erratum_id, changes, why):
    found = verdict(erratum_id, stage(*changes))
    assert not found.affected
    assert why in found.why
    assert found.where == ""


def test_metrics_decide_where_options_do_not():
    lost = {"replay_buffer": {"dropped_stale": 3.0, "evicted": 0.0}}
    found = verdict(PRIOR, stage(IN_PROCESSES, result=lost))
    assert found.affected and "replay_buffer/dropped_stale is 3" in found.why
    anew = {"learners": {"default_policy": {"recomputed_fragments": 4}}}
    found = verdict(BOOTSTRAP, stage(result=anew))
    assert found.affected and "recomputed_fragments is 4" in found.why
    kept = {"replay_buffer": {"dropped_stale": 0.0}, "iterations_since_restore": 10}
    assert not verdict(DROP, stage(WARMUP, REMOTE, result=kept)).affected
    restored = {**kept, "iterations_since_restore": 4}  # counted since, not since the warmup
    assert verdict(DROP, stage(WARMUP, REMOTE, result=restored)).affected


@pytest.mark.parametrize(
    ("option", "value"), [("weight_decay", 0.1), ("adam_eps", 1e-5), ("lr_factors", {"a": 2.0})]
)
def test_a_change_of_the_optimizers_options_between_records_is_seen(option, value):
    first = stage()
    found = verdict(OPTIMIZER, first, stage({option: value}, iteration=20, before=first))
    assert found.affected and found.where == "checkpoint_of_20"
    assert (
        f"{option} was {first.config[option]!r} in checkpoint_of_10 and is {value!r}" == found.why
    )
    new = stage({option: value}, iteration=20, numerics=1, before=first)
    assert not verdict(OPTIMIZER, first, new).affected, "takes effect since revision 1"


def test_a_warmup_concerns_the_stages_that_it_reaches_into():
    options = [WARMUP, REMOTE, buffer(max_staleness=0), {"entropy_coeff": 0.01}]
    early = stage(*options, iteration=3, numerics=1)
    late = stage(*options, iteration=10, before=stage(*options, iteration=5))
    assert not verdict(ENTROPY, early, late).affected
    assert "which was over" in verdict(BOOTSTRAP, early, late).why
    again = stage(*options, iteration=10, before=stage(*options, iteration=15))
    assert verdict(ENTROPY, again).affected, "it may have gone on from anywhere before"


ALL_MODES = [WARMUP, REMOTE, {"entropy_coeff": 0.01}]


def test_what_a_revision_with_the_mend_trained_is_not_affected():
    found = judge([stage(*ALL_MODES, numerics=NUMERICS)])
    assert [f.erratum for f in found] == list(ERRATA)
    assert not any(f.affected for f in found)
    assert {f.why for f in found} == {f"trained by revision {NUMERICS} of the numerics"}


def test_a_run_resumed_across_the_mend_is_affected_by_its_older_part():
    old = stage(*ALL_MODES)
    found = judge([old, stage(*ALL_MODES, iteration=20, numerics=NUMERICS, before=old)])
    affected = {f.erratum.id for f in found if f.affected}
    assert affected == {BOOTSTRAP, PRIOR, REMAINDER, ENTROPY, DROP}
    assert {f.where for f in found if f.affected} == {"checkpoint_of_10"}


def test_an_algorithm_without_the_options_is_not_concerned():
    clone = Stage("clone", 0, 10, resolved_options(MineStudioBCConfig()), {})
    found = judge([clone])
    assert not any(f.affected for f in found)
    assert "the algorithm has no option" in verdict(REMAINDER, clone).why
    assert "in all records" in verdict(OPTIMIZER, clone).why


def test_every_erratum_is_dated_and_described_in_the_docs():
    text = PAGE.read_text()
    assert len({erratum.id for erratum in ERRATA}) == len(ERRATA)
    assert [e.mended_in for e in ERRATA] == sorted(e.mended_in for e in ERRATA)
    for erratum in ERRATA:
        date.fromisoformat(erratum.date)
        assert f"| `{erratum.id}` | {erratum.date} | {erratum.mended_in} |" in text
    defaults = resolved_options(MineStudioPPOConfig())
    assert not {name for erratum in ERRATA for name in erratum.options} - defaults.keys()
