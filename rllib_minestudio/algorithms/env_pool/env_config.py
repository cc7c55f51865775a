"""The options of one environment, and its place among all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class EnvConfig(dict[str, Any]):
    """What RLlib calls EnvContext, without RLlib.

    Environments run in processes that shall not have to import Ray to read their options.

    Attributes:
        worker_index: Of the env runner; 0 for the local one.
        vector_index: Of the environment in the env runner.
        num_workers: How many remote env runners there are.
    """

    def __init__(
        self, options: Mapping[str, Any], *, worker_index: int, vector_index: int, num_workers: int
    ) -> None:
        """Copy the options."""
        super().__init__(options)
        self.worker_index = worker_index
        self.vector_index = vector_index
        self.num_workers = num_workers
