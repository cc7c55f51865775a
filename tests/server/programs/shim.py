"""What MineStudio 1.1.6 needs beside current packages; its own files stay as they are."""

import json

import numpy as np

if not hasattr(np, "unicode_"):
    np.unicode_ = np.str_  # NumPy 1's name


def facts(**values):
    """Print what the test looks at."""
    print("\nfacts: " + json.dumps(values), flush=True)
