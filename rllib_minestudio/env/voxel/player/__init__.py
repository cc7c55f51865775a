"""The player: its state, and the rules of moving, fighting, mining and eating.

locomotion   kernels: movement, and one whole tick of the player
combat raycast    kernels: fighting and mining; what is aimed at
player       state shared by kernels and Python, keys as bits, hunger, status effects
"""
