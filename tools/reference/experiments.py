"""Every key of an experiment file."""

from __future__ import annotations

from rllib_minestudio.env.recorder import RecorderOptions
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.experiments.experiment_file import EXPERIMENT_KEYS, Experiment
from rllib_minestudio.experiments.sections import (
    DEFAULTS,
    RLLIB_NAMES,
    SCHEDULERS,
    CheckpointOptions,
    SummaryOptions,
)
from rllib_minestudio.experiments.trackers import MlflowOptions, WandbOptions
from tools.reference.tables import (
    dataclass_table,
    in_yaml,
    inherited_table,
    prose,
)

_INTRODUCTION = """\
## The experiment file

A YAML file holds one or more experiments, each under the name of its results folder:

```yaml
cow:
  run: MineStudioPPO
  env: MineStudioEnv
  stop: {time_total_s: 720}
  config: {lr: 1e-3, env_config: {obs_size: [64, 64]}}
```

`stop` accepts every [metric](metrics.md).
"""

_EVALUATION = """\
See [Evaluation](evaluation.md#during-training). In Python, four keys are settings of RLlib ({});
the others are keys of `evaluation_options`.
"""

_OF_RLLIB = {
    "interval": (None, "integer", "Iterations from one evaluation to the next; required."),
    "workers": (0, "integer", "Env runners for evaluation only; 0 plays in the driver."),
    "parallel": (
        False,
        "true or false",
        "Whether to evaluate during the next iteration, not before it; needs remote learners.",
    ),
}
"""Keys of the section `evaluation` that are options of RLlib: default, values, sentence."""


def section() -> str:
    """Return the section of the options' page."""
    rllibs = ", ".join(f"`{key}`: `{name}`" for key, name in RLLIB_NAMES.items())
    own = [option for option in Experiment.__dataclass_fields__ if option not in EXPERIMENT_KEYS]
    return "\n".join(
        [
            _INTRODUCTION,
            dataclass_table(Experiment, without=own),
            "### `checkpoint_config`\n",
            "See [Checkpoints](checkpoints.md).\n",
            dataclass_table(CheckpointOptions),
            "### `summary`\n",
            dataclass_table(SummaryOptions),
            "### `evaluation`\n",
            _EVALUATION.format(rllibs),
            dataclass_table(
                EvaluationOptions,
                more=[
                    (key, "" if default is None else in_yaml(default), kind, sentence)
                    for key, (default, kind, sentence) in _OF_RLLIB.items()
                ],
            ),
            "### `evaluation.record`\n",
            "`record: true` records into the trial's folder, with `source: auto` and otherwise the "
            "defaults.\n",
            dataclass_table(RecorderOptions),
            *_schedulers(),
            "### `trackers.wandb`\n",
            "See [Metrics and trackers](metrics.md#trackers).\n",
            dataclass_table(WandbOptions),
            "### `trackers.mlflow`\n",
            dataclass_table(MlflowOptions),
        ]
    )


def _schedulers() -> list[str]:
    """Return a section for each scheduler."""
    lines = []
    for name, scheduler in SCHEDULERS.items():
        lines += [f"### `scheduler.{name}`\n", f"{prose(scheduler.__doc__)}\n"]
        lines.append(inherited_table(scheduler, DEFAULTS))
    return lines
