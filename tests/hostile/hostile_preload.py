"""What the server of attacks imports once, so that no attack pays for it."""

import ray.rllib.algorithms.algorithm  # noqa: F401

import rllib_minestudio.algorithms
import rllib_minestudio.algorithms.cloning
import rllib_minestudio.cli.main
import rllib_minestudio.demonstrations
import rllib_minestudio.evaluation.checkpoint
import rllib_minestudio.evaluation.report.page
import rllib_minestudio.experiments.evaluate_checkpoint
import rllib_minestudio.experiments.reading.tune_plan
import rllib_minestudio.experiments.train
import rllib_minestudio.models.vpt.export
import rllib_minestudio.models.vpt.summary  # noqa: F401


def _warm_up() -> None:
    """Load one honest file of each form: the first time, libraries import more of themselves."""
    import tempfile
    from pathlib import Path

    import hostile_experiments
    import hostile_weights
    import yaml

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in hostile_weights.cases():
            if case.expected == "accepted":
                case.attack(case.prepare(folder))
            else:
                break
        file = folder / "x.yaml"
        file.write_text(yaml.safe_dump(hostile_experiments.HONEST))
        hostile_experiments.plan(str(file))
        compiled = hostile_experiments._with("config.model.compile", True)
        hostile_experiments.plan(compiled(folder))  # imports torch's compiler


_warm_up()
