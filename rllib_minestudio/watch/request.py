"""The options of `rllib watch`; what carries them out imports Ray, torch and a web server."""

from __future__ import annotations

from dataclasses import dataclass

from rllib_minestudio.experiments.evaluate_checkpoint import EvaluationRequest, PlayRequest
from rllib_minestudio.foundation.options import Flag, like, option


@dataclass(frozen=True, kw_only=True)
class WatchRequest:
    """A request to watch: what there is to view, and where the page is served."""

    source: str = option(
        "results",
        "What there is to view, see above.",
        Flag("TASK|EXPERIMENT|CHECKPOINT|RUN", is_positional=True),
    )
    agent: str | None = option(
        None,
        "Another agent that can be watched in a TASK: a checkpoint, an experiment file, or "
        "MODULE:FUNCTION.",
        Flag("CHECKPOINT|FILE|MODULE:FUNCTION"),
    )
    compare: str | None = option(
        None, "Further things to view, side by side with the others.", Flag("SOURCE")
    )
    port: int = option(
        0, "Port on loopback; 0 takes a free one.", most=65535, wording="a port, from 0 to 65535"
    )
    open: bool = option(False, "Open the page in the default browser.")
    out: str = option("played", "Where recordings of what you play go.", Flag("DIR"))
    rate: float = option(
        20.0,
        "Most pictures a second that are drawn and sent.",
        least=1,
        most=60,
    )
    kl_to: str | None = option(
        None,
        "Weights to show the divergence from. Default: the prior of the training, if there was "
        "one.",
        Flag("WEIGHTS"),
    )
    deterministic: bool = like(PlayRequest, "deterministic")
    overrides: tuple[str, ...] = like(PlayRequest, "overrides")
    trust: bool = like(PlayRequest, "trust")
    quiet: bool = like(EvaluationRequest, "quiet")
