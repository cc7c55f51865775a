"""Mutation testing of the learner and the training loop: draw mutants, judge them, tabulate them.

    COSMIC_RAY/bin/python -m tools.mutants draw COVERAGE.json --count 300 --seed 0 > mutants.jsonl
    python -m tools.mutants judge mutants.jsonl --workers 2 --out judged.jsonl
    python -m tools.mutants table judged.jsonl equivalent.yaml

cosmic-ray makes the mutants; only `draw` needs it, so that it can have a virtual environment of its
own. docs/correctness.md has the commands that record the coverage.
"""
