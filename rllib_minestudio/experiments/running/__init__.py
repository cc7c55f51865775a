"""Starting a planned run, going on with one, and what a run needs of its machine."""
