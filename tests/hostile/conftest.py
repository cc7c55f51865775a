"""The corpus's modules import each other by their names, here and in the server of attacks."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
