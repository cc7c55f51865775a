"""Mutation testing of the learner and the training loop: draw mutants, judge them, tabulate them.

    python -m tools.mutants cover FOLDER
    COSMIC_RAY/bin/python -m tools.mutants draw FOLDER/coverage.json > mutants.jsonl
    python -m tools.mutants judge mutants.jsonl --workers 2 --out judged.jsonl
    python -m tools.mutants table judged.jsonl equivalent.yaml

`cover` needs coverage. cosmic-ray makes the mutants; only `draw` needs it, so that it can have a
virtual environment of its own. docs/correctness.md says how mutants are judged.
"""
