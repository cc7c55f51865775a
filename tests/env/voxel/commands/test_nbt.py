"""NBT data of commands: what is read, and that nothing else than `NbtError` comes of bad data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_minestudio.env.voxel.commands.parsing import NbtError, read_nbt


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{}", {}),
        ("{Age:-24000}", {"Age": -24000}),
        (
            '{Enchantments:[{id:"minecraft:silk_touch",lvl:1s}]}',
            {"Enchantments": [{"id": "minecraft:silk_touch", "lvl": 1}]},
        ),
        ("{ a : 1b , b : 2.5f, c: .5d }", {"a": 1, "b": 2.5, "c": 0.5}),
        ('{display:{Name:"a \\"b\\""}}', {"display": {"Name": 'a "b"'}}),
        ("{a:'it\\'s',b:plain,c:true}", {"a": "it's", "b": "plain", "c": 1}),
        ("{a:[I;1,2,3],b:[]}", {"a": [1, 2, 3], "b": []}),
        ('{"quoted key":1}', {"quoted key": 1}),
    ],
)
def test_what_is_read(text, wanted):
    assert read_nbt(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "}",
        "[]",
        "{a}",
        "{a:}",
        "{a:1",
        "{a:1,,b:2}",
        "{a:1}}",
        "{a:[1}",
        '{a:"b}',
        "{\x00:1}",
    ],
)
def test_what_is_refused(text):
    with pytest.raises(NbtError):
        read_nbt(text)


def test_no_depth_is_too_much():
    for deep in ("{a:" * 5000, "{a:" + "[" * 5000):
        with pytest.raises(NbtError):
            read_nbt(deep)


@given(st.text(alphabet="{}[]:;,\"\\'aB1-.e \n\u00e9", max_size=60))
def test_nothing_else_comes_of_any_text(text):
    try:
        assert isinstance(read_nbt(text), dict)
    except NbtError as error:
        assert str(error)


_PLAIN = st.integers(-(10**17), 10**17) | st.text('abc\\"', max_size=5)


@given(
    st.recursive(
        _PLAIN,
        lambda of: (
            st.lists(of, max_size=3)
            | st.dictionaries(st.text("xyz", min_size=1, max_size=3), of, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_what_is_written_is_read_again(value):
    def written(value):
        if isinstance(value, dict):
            return "{" + ",".join(f"{name}:{written(tag)}" for name, tag in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(written, value)) + "]"
        if isinstance(value, str):
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        return str(value)

    assert read_nbt(written({"tag": value})) == {"tag": value}
