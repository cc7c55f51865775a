"""Policies: networks, action distributions, and the RLModules that adapt them to RLlib."""
