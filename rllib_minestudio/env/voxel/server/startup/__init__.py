"""What Python runs before a program in which MineStudio plays on the embedded engine."""
