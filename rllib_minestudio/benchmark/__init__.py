"""The benchmark: suites of tasks whose success is decided by a program, and runs of them."""

from typing import TYPE_CHECKING, Any

from rllib_minestudio.foundation.names import load_public_name

if TYPE_CHECKING:
    from rllib_minestudio.benchmark.players import task_env_config
    from rllib_minestudio.benchmark.results import BenchmarkResults
    from rllib_minestudio.benchmark.task import load_suite

__all__ = [
    "BenchmarkResults",
    "load_suite",
    "task_env_config",
]

_HOME_OF = {
    "task_env_config": "rllib_minestudio.benchmark.players",
    "BenchmarkResults": "rllib_minestudio.benchmark.results",
    "load_suite": "rllib_minestudio.benchmark.task",
}


def __getattr__(name: str) -> Any:
    return load_public_name(__name__, name, _HOME_OF)
