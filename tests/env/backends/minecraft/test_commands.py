"""Commands that the game would ignore or take for something else."""

import pytest

from rllib_minestudio.env.backends.minecraft.items import modern
from rllib_minestudio.errors import InvalidActionError


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("/effect @p 5 9999 255 True", "/effect give @p minecraft:strength 9999 255 true"),
        ("/effect @p 11 9999 255", "/effect give @p minecraft:resistance 9999 255"),
        ("effect @e[type=cow] speed 10", "/effect give @e[type=cow] minecraft:speed 10"),
        ("/effect Steve minecraft:luck", "/effect give Steve minecraft:luck"),
        ("/effect @a clear", "/effect clear @a"),
    ],
)
def test_effects_are_given_in_the_present_syntax(given, sent):
    assert modern(given) == sent
    assert modern(sent) == sent


@pytest.mark.parametrize(
    "command",
    [
        "/effect give @p minecraft:speed 10 1 true",
        "/effect clear @p",
        "/effect @p 77 10",
        "/give @p minecraft:diamond 64",
        "/summon cow ~ ~ ~ {Age:0}",
    ],
)
def test_other_commands_stay_as_they_are(command):
    assert modern(command) == command


@pytest.mark.parametrize("command", ["/say a\nattack 1", "/say a\rattack 1"])
def test_a_second_line_would_press_keys(command):
    with pytest.raises(InvalidActionError, match="one line"):
        modern(command)
