"""The player: its state, and the rules of moving, fighting, mining and eating.

locomotion   kernels: movement, and one whole tick of the player
mining combat eating raycast    kernels: the other rules
player       state shared by kernels and Python, keys as bits, hunger, status effects
"""
