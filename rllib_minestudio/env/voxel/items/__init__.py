"""Items and the inventory.

inventory    slots and stacks
items        item types, mining speeds, foods
"""
