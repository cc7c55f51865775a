"""Items and the inventory.

items        item types, mining speeds, foods
"""
