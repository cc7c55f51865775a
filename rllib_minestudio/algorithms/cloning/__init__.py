"""The data and the learner of MineStudioBC: recordings -> Ray Data -> windows -> weights."""
