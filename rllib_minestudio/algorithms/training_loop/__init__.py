"""Experience on its way to the learner and weights on their way back, whatever fails meanwhile."""
