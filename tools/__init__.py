"""What makes files of this repository. It may import the package, and is no part of it."""
