"""`python tests/hostile/count.py [-v] [category ...]`: how many attacks ended how."""

import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from judging import judged

CATEGORIES = (
    *("weights", "recordings", "experiments", "command_lines", "checkpoints", "policies"),
    "packs",
)

if __name__ == "__main__":
    verbose = "-v" in sys.argv
    for category in [word for word in sys.argv[1:] if word != "-v"] or CATEGORIES:
        cases = import_module(f"hostile_{category}").cases()
        with tempfile.TemporaryDirectory() as folder:
            counts: Counter[str] = Counter()
            for case, verdict in judged(cases, Path(folder)):
                counts[
                    verdict.kind if case.expected == "refused" else f"honest {verdict.kind}"
                ] += 1
                if verbose and verdict.kind != case.expected:
                    print(f"  {case.name}: {verdict}")
        print(category, sum(counts.values()), dict(counts), flush=True)
