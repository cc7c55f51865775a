"""Programs that generate files of this repository: they use the package, but are no part of it."""
