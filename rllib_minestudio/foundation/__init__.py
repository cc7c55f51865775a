"""What all layers use, and what knows none of them; see docs/architecture.md."""
