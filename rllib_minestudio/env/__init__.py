"""Environment layer: MineStudio's simulator contract and its gymnasium environment."""
