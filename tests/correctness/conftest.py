"""Harnesses that end with their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.correctness.harness import Harness, config_of


@pytest.fixture
def make_harness() -> Iterator[Callable[..., Harness]]:
    """Builds a harness from the arguments of `config_of`."""
    made: list[Harness] = []

    def make(*args: Any, **options: Any) -> Harness:
        made.append(Harness(config_of(*args, **options)))
        return made[-1]

    yield make
    for harness in made:
        harness.close()
