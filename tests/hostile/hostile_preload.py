"""What the server of attacks imports once, so that no attack pays for it."""

import ray.rllib.algorithms.algorithm  # noqa: F401


def _warm_up() -> None:
    """Load one honest file of each form: the first time, libraries import more of themselves."""
    import tempfile
    from pathlib import Path

    import hostile_experiments
    import hostile_packs
    import hostile_weights
    import yaml

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in hostile_weights.cases():
            if case.expected == "accepted":
                case.attack(case.prepare(folder))
            else:
                break
        hostile_packs.use(hostile_packs.honest(folder / "pack"))
        file = folder / "x.yaml"
        file.write_text(yaml.safe_dump(hostile_experiments.HONEST))
        hostile_experiments.plan(str(file))
        compiled = hostile_experiments._with("config.model.compile", True)
        hostile_experiments.plan(compiled(folder))  # imports torch's compiler


_warm_up()
