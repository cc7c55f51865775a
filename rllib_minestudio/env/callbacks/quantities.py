"""How many of an item, in the words of MineStudio's InitInventory."""

from __future__ import annotations

import operator
import re
from typing import Any

from rllib_minestudio.option_checks import is_integer

RANDOM = "random"
_LARGEST = 64
"""Of the count that commands take, whatever the item."""

_COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
_CONDITION = re.compile(r"(<=|>=|==|<|>)\s*(\d{1,3})")

QUANTITY_RULE = (
    f"must be an integer from 1 to {_LARGEST}, 'random', or conditions such as '>=2,<12' that 1 to "
    "{size} {name} can meet"
)
"""What `allowed_quantities` understands, for messages: to be formatted with an item and its
stack."""


def allowed_quantities(quantity: Any, stack_size: int) -> list[int]:
    """Return the quantities that a number, conditions or "random" allow.

    Args:
        quantity: A number, which may exceed a full stack; "random", 1 to a full stack; or
            conditions separated by commas, all of which must be met: `<`, `<=`, `>`, `>=` or `==`
            and a number.
        stack_size: How many make a full stack.

    Returns:
        The quantities in order; none if it says nothing, or nothing that can be.
    """
    if is_integer(quantity):
        return [quantity] if 1 <= quantity <= _LARGEST else []
    if not isinstance(quantity, str):
        return []
    allowed = list(range(1, stack_size + 1))
    for part in () if quantity == RANDOM else quantity.split(","):
        condition = _CONDITION.fullmatch(part.strip())
        if condition is None:
            return []
        compare, number = _COMPARISONS[condition[1]], int(condition[2])
        allowed = [count for count in allowed if compare(count, number)]
    return allowed
