"""Words of Minecraft's commands and names."""

NAMESPACE = "minecraft:"
"""Before the name of everything that comes with the game; it may be left out."""

WEATHERS = ("clear", "rain", "thunder")
DIFFICULTIES = ("peaceful", "easy", "normal", "hard")

NO_ENTITY, NO_PLAYER = "No entity was found", "No player was found"
"""What a command answers whose selector selects nothing."""
