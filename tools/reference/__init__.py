"""The reference pages, generated from the code, so that no option goes undocumented.

They are built with the documentation's site and not committed. To read them as Markdown:

python -m tools.reference FOLDER
"""
