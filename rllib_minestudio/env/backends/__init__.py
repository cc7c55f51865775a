"""The games behind the simulator.

protocol    what a backend is: what callbacks and the simulator may ask of it
factory     builds the backend that the option `engine` names
voxel       the embedded engine
minecraft/  the real Minecraft, over MineStudio's package
"""
