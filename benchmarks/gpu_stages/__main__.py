"""Run one stage in this process, and write what it has found so far after every row.

python -m gpu_stages gpu_stages.speed:acting ROWS.json --folder DIR --device cuda --limit 60
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from pathlib import Path
from typing import Any

from gpu_stages.rows import Setting
from rllib_minestudio.foundation.files import write_whole


def main() -> None:
    """Run the stage."""
    started = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("function", help="MODULE:FUNCTION")
    parser.add_argument("rows", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--limit", type=float, required=True, help="seconds")
    parser.add_argument("--short", action="store_true")
    arguments = parser.parse_args()
    module, _, function = arguments.function.partition(":")
    setting = Setting(
        device=arguments.device,
        short=arguments.short,
        folder=arguments.folder,
        ends_at=started + arguments.limit,
    )
    found: dict[str, dict[str, Any]] = {}
    for row in getattr(importlib.import_module(module), function)(setting):
        found[row.what] = row._asdict()
        write_whole(arguments.rows, json.dumps(list(found.values()), indent=1))


if __name__ == "__main__":
    main()
