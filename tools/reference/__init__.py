"""The pages of docs/ that are generated from the code, so that no option goes undocumented.

python -m tools.reference docs
"""
