"""Evaluation of trained agents: playing episodes, recording videos, drawing learning curves."""
