"""Startup code of Python processes in which MineStudio plays on the embedded engine."""
