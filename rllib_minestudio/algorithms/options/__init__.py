"""The options of the algorithms, each declared once; docs/options.md lists them.

Nothing here imports Ray or torch, so that `--help` is quick.
"""
