"""Every format that is read back is a model with bounds, and no file of it ends badly.

`hostile_documents.py` makes the attacks of honest documents. A part of them runs here in a second
or two; `test_hostile.py` runs them all, each with its time and memory measured.
"""

import json
from contextlib import suppress
from importlib import import_module
from itertools import islice
from typing import Annotated

import hostile_documents
import pytest
from hostile_documents import CONTROLS, FORMATS, endure, printed

from rllib_minestudio.cli.main import main
from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.foundation.documents import (
    Document,
    Excerpt,
    MeasuredMapping,
    Name,
    Plain,
    one_of,
    parse_document,
    parse_excerpt,
    parse_written,
)
from rllib_minestudio.foundation.files import SmallFileError, parse_json, read_yaml
from rllib_minestudio.foundation.options import Problems

MODULES = (
    *(
        "benchmark.results_file",
        "benchmark.task",
        "checkpoints.formats",
        "demonstrations.recording",
    ),
    "env.callbacks.tasks",
    *("evaluation.summary", "checkpoints.formats", "recordings.columns", "recordings.contractor"),
    *("recordings.reader", "watch.protocol", "env.voxel.game.snapshot"),
)
"""Where the models are."""

BOUNDS = {
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "string": ("maxLength",),
    "array": ("maxItems",),
}

EACH = 97
"""Every so many attacks, one runs here; a prime, so that all kinds have their turn."""


def models():
    for module in MODULES:
        import_module(f"rllib_minestudio.{module}")
    waiting: list[type] = [Document, Excerpt]
    while waiting:
        below = waiting.pop().__subclasses__()
        yield from (model for model in below if model.__module__.startswith("rllib_minestudio."))
        waiting += below


def unbounded(schema, where):
    """Yield the parts of a model's JSON schema whose values may be as large as they like."""
    kind = schema.get("type")
    if "const" in schema or "enum" in schema or kind in ("null", "boolean") or "$ref" in schema:
        return
    for part in schema.get("anyOf", ()):
        yield from unbounded(part, where)
    if "anyOf" in schema or "maxDepth" in schema:  # plain data
        return
    if kind == "object":
        for name, field in schema.get("properties", {}).items():
            yield from unbounded(field, f"{where}.{name}")
        others = schema.get("additionalProperties", True)
        if isinstance(others, dict):
            yield from unbounded(others, f"{where}.*")
        if "properties" not in schema and not schema.get("title", "").endswith("Document"):
            keys = schema.get("propertyNames", {})
            if "maxProperties" not in schema or not {"maxLength", "enum"} & keys.keys():
                yield where
        if others is True and not schema.get("title", "").endswith("Excerpt"):
            yield f"{where}.*"
        return
    if kind == "array":
        for part in schema.get("prefixItems") or [schema.get("items", {})]:
            yield from unbounded(part, f"{where}[]")
    found = {bound.replace("exclusiveM", "m") for bound in schema}
    if kind not in BOUNDS or any(bound not in found for bound in BOUNDS[kind]):
        yield where


def test_every_field_of_every_model_has_bounds():
    found = {model.__name__: model.model_json_schema() for model in models()}
    assert len(found) >= 20
    assert not [where for name, schema in found.items() for where in unbounded(schema, name)]
    for model in models():
        assert model.model_config["strict"]
        assert issubclass(model, Excerpt) == (model.model_config["extra"] == "ignore")


def test_every_model_is_attacked():
    attacked = set()
    for known in FORMATS.values():
        attacked |= {base.__name__ for base in known.model.__mro__}
        attacked |= set(known.model.model_json_schema().get("$defs", {}))
    assert {model.__name__ for model in models()} <= attacked


class _Loose(Document):
    numbers: list[float]
    texts: dict[str, str]
    anything: dict


def test_a_field_without_bounds_is_noticed():
    found = list(unbounded(_Loose.model_json_schema(), ""))
    assert found == [".numbers[]", ".numbers", ".texts.*", ".texts", ".anything", ".anything.*"]


@pytest.mark.parametrize("name", FORMATS)
def test_an_honest_document_is_read(name, tmp_path):
    known = FORMATS[name]
    text = hostile_documents.as_text(known.honest(), known.path)
    assert endure((name, str(known.write(tmp_path, text)))) == "read"


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_wrong_in_one_place_is_refused_in_one_sentence_or_harmless(name, tmp_path):
    ends = []
    for number, (_, make) in enumerate(islice(FORMATS[name].attacks, 0, None, EACH)):
        file = FORMATS[name].write(tmp_path / str(number), make())
        try:
            ends.append(endure((name, str(file))))
        except MineStudioError:
            ends.append("refused")
    assert FORMATS[name].errors == () or "refused" in ends


class _Some(Document):
    text: str | None = None
    plain: Plain = None
    mapping: MeasuredMapping | None = None


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"text": 5}, "text must be text; got 5"),
        (
            {"stranger": 5, "text": 5},
            "text must be text; .*, and 1 more of its fields are wrong",
        ),
        ({"plain": {"a": [{"b": float("nan")}]}}, r"plain\.a\[0\]\.b must be a number .*; got nan"),
        ({"mapping": {"a": {5: {}, "x": 2**63}}}, r"mapping\.a\.x must be an integer .*"),
        ({"mapping": {5: 1}}, "mapping must have texts of at most 300 characters as keys; got 5"),
        ({CONTROLS: 1}, r"\['\\x1b\[31m.*'\] is not a field that it has"),
        ({"plain": [0] * 10**6}, "plain must have at most 200,000 values; got .*"),
        ({str(n): 1 for n in range(10**5)}, "it must have at most 10,000 fields.*"),
        ("x", "it must be a mapping; got 'x'"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_problem_names_the_field_the_value_and_the_rule(facts, said):
    with pytest.raises(SmallFileError, match=f"^{said}$"):
        parse_document(facts, _Some)


class _WrittenDocument(Document):
    some: _Some | None = None
    colour: Annotated[Name, one_of(("green", "red"))] = "green"


def test_every_mistake_of_what_a_person_wrote_is_told_up_to_a_limit():
    problems = Problems("mine")
    facts = {"colour": "gren", "some": {"txet": 1, "text": 5}}
    assert parse_written(facts, _WrittenDocument, problems) is None
    assert problems.messages == [
        "mine: some.text must be text; got 5.",
        "mine: some: unknown field 'txet'. Did you mean 'text'? Valid: text, plain, mapping.",
        "mine: colour must be one of 'green', 'red'; got 'gren'. Did you mean 'green'?",
    ]
    problems = Problems()
    parse_written({f"x{n}": 1 for n in range(50)}, _WrittenDocument, problems)
    assert len(problems.messages) == 21
    assert problems.messages[-1] == "30 more of its fields are wrong."


class _UsedExcerpt(Excerpt):
    number: int


def test_what_is_dropped_of_a_line_is_bounded_by_the_size_of_its_text():
    text = b'{"number": 5, "more": "%s"}'
    most = Excerpt.longest - len(text) + 2
    assert parse_excerpt(text % (b"a" * most), _UsedExcerpt) == _UsedExcerpt(number=5)
    with pytest.raises(SmallFileError, match=r"^it has 1,048,577 bytes, more than 1,048,576$"):
        parse_excerpt(text % (b"a" * (most + 1)), _UsedExcerpt)
    with pytest.raises(SmallFileError, match=r"^it is not JSON \(EOF while parsing.*\)$"):
        parse_excerpt(b'{"number": 5', _UsedExcerpt)


def test_a_key_that_is_given_twice_is_refused(tmp_path):
    with pytest.raises(SmallFileError, match="the key 'a' twice"):
        parse_json('{"b": [{"a": 1, "c": 2, "a": 1}]}')
    file = tmp_path / "x.yaml"
    file.write_text("base: &base {a: 1}\nb:\n  <<: *base\n  a: 2\n")
    assert read_yaml(file)["b"] == {"a": 2}
    file.write_text('a: 1\nb: 1\n"a": 2\n')
    with pytest.raises(SmallFileError, match="the key 'a' twice"):
        read_yaml(file)


def texts_of(name):
    """Yield the texts of a document whose characters its model leaves free."""
    known = FORMATS[name]
    document = json.loads(json.dumps(known.honest()))
    for path in hostile_documents.places(document):
        if isinstance(hostile_documents._at(document, path), str):
            with suppress(SmallFileError):
                parse_document(hostile_documents._with(document, path, CONTROLS), known.model)
                yield path


@pytest.mark.parametrize("name", ["benchmark", "task", "summary", "episode", "record", "run"])
def test_control_characters_of_a_file_do_not_reach_the_terminal(name, tmp_path, capfd):
    """All texts at once; `endure` looks at what is printed of them."""
    document, known = json.loads(json.dumps(FORMATS[name].honest())), FORMATS[name]
    paths = list(texts_of(name))
    assert paths
    for number, path in enumerate(paths):
        document = hostile_documents._with(document, path, f"{number}{CONTROLS}")
    text = hostile_documents.as_text(document, known.path)
    with suppress(MineStudioError):
        endure((name, str(known.write(tmp_path, text))))
    said = capfd.readouterr()
    assert all(c.isprintable() or c in "\n\t" for c in said.out + said.err)


def test_an_error_shows_the_control_characters_of_a_file(tmp_path, capfd):
    (tmp_path / "benchmark.json").write_text(json.dumps({CONTROLS: CONTROLS}))
    assert main(["benchmark", "compare", str(tmp_path), str(tmp_path)]) == 2
    said = capfd.readouterr()
    assert "format is missing" in said.err
    printed(said.err)
    assert all(c.isprintable() or c == "\n" for c in said.out + said.err)
