"""The player: its state and the rules that it moves, fights, mines and eats by.

player_tick  kernel: one tick of the player, by the rules below
locomotion mining combat eating hunger raycast    kernels: the rules
effects      status effects
player       the state, as a record that kernels and Python share
controls     the keys of an action as bits
"""
