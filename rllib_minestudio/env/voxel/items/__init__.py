"""What can be carried.

inventory    slots and stacks
tools        how fast an item mines each block
items        the table of item types
foods        the table of foods
"""
