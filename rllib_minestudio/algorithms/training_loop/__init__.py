"""Moving experience to the learner and weights back to the env runners, despite failures."""
