"""The stages of `benchmarks/gpu.py`: a function each, from a `Setting` to `Row`s."""
