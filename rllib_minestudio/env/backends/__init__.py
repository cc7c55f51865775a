"""The games behind the simulator.

protocol    the interface of backends, for callbacks and the simulator
factory     builds the backend that the option `engine` names
voxel       the embedded engine
minecraft/  the real Minecraft, on top of MineStudio's package
"""
