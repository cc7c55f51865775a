"""Value statistics as one learner keeps them, one batch of returns at a time."""


def take_in(head, returns):
    """Enter a batch of returns, of any shape and in the task's units, into a head's statistics."""
    head.normalizer.update(returns.mean(), returns.square().mean())
