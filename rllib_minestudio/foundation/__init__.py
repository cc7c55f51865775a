"""The lowest layer: used by all others, uses none of them; see docs/architecture.md."""
