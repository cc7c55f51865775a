"""The configs of the algorithm's own tests."""

from tests.algorithms.conftest import make_config, make_config_for_module

__all__ = ["make_config", "make_config_for_module"]
