"""Policies: the VPT network and the RLModule that adapts it to RLlib."""
