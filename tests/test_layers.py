"""Imports point downwards, and never in a circle: the layers of docs/architecture.md.

Every import counts: those at the top of a file, late ones inside functions, and modules that only
a string names, for `import_module` or in a table such as `_HOME_OF`.
"""

import ast
import configparser
import re
import sys
from collections import defaultdict
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PACKAGE = Path(__file__).parents[1] / "rllib_minestudio"
OURS = "rllib_minestudio"
ENGINE = f"{OURS}.env.voxel"
ENGINE_LAYERS = (
    *("data", "world", "items", "entities", "player", "screens", "render", "game"),
    *("commands", "engine", "server"),
)
"""Upwards, in `env/voxel`."""

LAYERS = (
    *("env", "models", "algorithms", "evaluation", "experiments", "benchmark"),
    *("watch", "doctor", "cli"),
)
"""Upwards; `checkpoints`, `recordings` and `demonstrations` lie beside `env`, below `models`."""


def from_layer(lowest):
    """A layer and those above it."""
    return [f"{OURS}.{layer}" for layer in LAYERS[LAYERS.index(lowest) :]]


FORBIDDEN = {
    ".": ["benchmarks", "tests", "tools"],  # of the repository; they may import the package
    "env/voxel": ["gymnasium", "ray", "torch", f"{OURS}.env", *from_layer("models")],
    **{
        f"env/voxel/{layer}": [f"{ENGINE}.{above}" for above in ENGINE_LAYERS[i + 1 :]]
        for i, layer in enumerate(ENGINE_LAYERS)
        if (PACKAGE / "env" / "voxel" / layer).is_dir()
    },
    "env": ["ray", "torch", *from_layer("models")],
    "checkpoints": [
        *("gymnasium", "ray", f"{OURS}.recordings", f"{OURS}.demonstrations"),
        *from_layer("env"),
    ],
    **{
        f"checkpoints/{file.name}": ["torch"]
        for file in sorted((PACKAGE / "checkpoints").glob("*.py"))
        if file.name != "tensor_files.py"  # reads what torch wrote, when a policy is loaded
    },
    "recordings": ["gymnasium", "ray", "torch", *from_layer("env")],
    "demonstrations": ["ray", "torch", *from_layer("models")],
    "models": from_layer("algorithms"),
    **{
        f"models/{file}.py": ["ray", "gymnasium", f"{OURS}.env", f"{OURS}.models.vpt"]
        for file in (*("distributions", "fine_tuning", "acting", "strict_loading", "value_head"),)
    },
    "models/conv_gru.py": ["ray", "gymnasium", f"{OURS}.env"],
    "models/kernels": ["ray", "gymnasium", f"{OURS}.env", f"{OURS}.models.vpt"],
    **{
        f"models/kernels/{file}.py": ["torch"]
        for file in (
            *("direct", "direct_blocks", "direct_calls", "direct_layers"),
            *("compilation", "winograd", "winograd_calls"),
        )
    },
    "models/vpt": ["ray", "gymnasium", f"{OURS}.env"],
    "algorithms": from_layer("evaluation"),
    "algorithms/env_pool": ["ray", "torch", f"{OURS}.models"],
    "algorithms/hooks.py": ["ray", "torch", OURS],
    "algorithms/learner/gae.py": ["ray", "torch", f"{OURS}.models"],
    "algorithms/learner/objective.py": ["ray"],
    "algorithms/training_loop/replay_buffer.py": ["ray", "torch", f"{OURS}.models"],
    "evaluation": from_layer("experiments"),
    "experiments": from_layer("benchmark"),
    "benchmark": from_layer("watch"),
    "watch": [f"{OURS}.benchmark", *from_layer("doctor")],
    **{
        f"benchmark/{file}.py": ["ray", "torch", f"{OURS}.algorithms", f"{OURS}.experiments"]
        for file in ("task", "judge")
    },
    "doctor.py": [f"{OURS}.cli", f"{OURS}.experiments", f"{OURS}.benchmark"],
    **{
        file.name: [f"{OURS}.recordings", f"{OURS}.demonstrations", *from_layer("env")]
        for file in sorted(PACKAGE.glob("*.py"))
        if file.name not in ("__init__.py", "doctor.py", "minestudio.py", "registration.py")
    },
    "foundation": [OURS],
    "foundation/observations.py": ["ray", "torch"],
}
"""A folder or file, and what it must not know."""

ALLOWED = {
    "env/voxel": [f"{OURS}.env.voxel"],
    "foundation": [f"{OURS}.errors", f"{OURS}.foundation"],
}


def files(layer):
    path = PACKAGE / layer
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


@cache
def imported_by(file):
    """What a file imports; layers overlap, and each file is parsed once."""
    return tuple(imports(file.read_text()))


def imports(source, *, for_types=True):
    """Every module that a file imports, at any time.

    Args:
        source: The file's text.
        for_types: Whether imports under `if TYPE_CHECKING` count.

    Yields:
        Modules, dotted; a name imported from a module as if it were one of its submodules.
    """
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in walk(tree, for_types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant))
        elif isinstance(node, ast.Constant) and id(node) not in docstrings:
            named = (
                re.match(rf"{OURS}(\.\w+)+", node.value) if isinstance(node.value, str) else None
            )
            if named:
                yield named[0]


def walk(node, for_types):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for part in [*(child.body if for_types else []), *child.orelse]:
                yield part
                yield from walk(part, for_types)
        else:
            yield child
            yield from walk(child, for_types)


def within(module, package):
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize(
    "source",
    [
        "from rllib_minestudio.cli import main",
        "from rllib_minestudio import cli",
        "import rllib_minestudio.cli.main as main",
        "def late():\n    from rllib_minestudio.cli.main import run",
        "import_module('rllib_minestudio.cli.main')",
        "importlib.import_module(f'rllib_minestudio.cli.{name}')",
        "_HOME_OF = {'run': 'rllib_minestudio.cli.main'}",
        "entry = 'rllib_minestudio.cli.main:run'",
        "if TYPE_CHECKING:\n    from rllib_minestudio.cli import main",
    ],
)
def test_every_kind_of_import_is_seen(source):
    assert any(within(module, f"{OURS}.cli") for module in imports(source))
    seen_at_run_time = list(imports(source, for_types=False))
    assert bool(seen_at_run_time) == ("TYPE_CHECKING" not in source)


def test_what_a_docstring_says_is_no_import():
    assert not list(imports('"""rllib_minestudio.cli is above."""'))


@pytest.mark.parametrize("layer", FORBIDDEN)
def test_a_layer_knows_nothing_of_those_above(layer):
    allowed = ALLOWED.get(layer, [])
    found = [
        f"{file.relative_to(PACKAGE)} imports {module}"
        for file in files(layer)
        for module in imported_by(file)
        for package in FORBIDDEN[layer]
        if within(module, package) and not any(within(module, own) for own in allowed)
    ]
    assert files(layer)
    assert not found


def import_graph():
    """Our modules, and which of them each imports, if only for an annotation.

    To import `a.b.c` is to import the packages `a` and `a.b` too, unless the importing module lies
    in them: then they are being imported already. The root, `rllib_minestudio/__init__.py`, ties
    everything together; see the test below.
    """
    sources = {module_of(file): file.read_text() for file in sorted(PACKAGE.rglob("*.py"))}
    graph = {}
    for module, source in sources.items():
        edges = graph[module] = set()
        for imported in imports(source):
            parts = imported.split(".")
            targets = {".".join(parts[:length]) for length in range(2, len(parts) + 1)}
            edges |= {target for target in targets & sources.keys() if not within(module, target)}
            owner = ".".join(parts[:-1])  # a package that gives a name of its own to its modules
            if imported not in sources and owner in sources and owner not in (OURS, module):
                edges.add(owner)
    return graph


def module_of(file):
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def reachable(graph, start):
    found, waiting = set(), [start]
    while waiting:
        for module in graph[waiting.pop()] - found:
            found.add(module)
            waiting.append(module)
    return found


def circles(graph):
    """The sets of modules that import one another, directly or not."""
    reach = {module: reachable(graph, module) for module in graph}
    return {
        frozenset({module} | {other for other in reach[module] if module in reach[other]})
        for module in graph
        if module in reach[module]
    }


def test_a_circle_is_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == {frozenset({"b", "c"})}


def test_no_import_leads_back():
    """Evaluation and algorithms are none: see `algorithms/hooks.py`."""
    assert not circles(import_graph())


def test_nothing_is_imported_from_the_root():
    """Its public names are for users."""
    modules = {module_of(file) for file in PACKAGE.rglob("*.py")}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == OURS:
                names = {f"{OURS}.{alias.name}" for alias in node.names}
                assert names <= modules, f"{file}: import from where it is defined"


def test_the_name_of_a_class_means_one_thing():
    """But for MineStudio's public names, which stand beside what does their work here."""
    homes = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module_of(file))
    assert {name for name, modules in homes.items() if len(modules) > 1} == {
        "EpisodeRecorder",
        "MinecraftSim",
    }


OPTIONAL = {
    "env/backends/minecraft/backend.py": {"minestudio", "lxml"},  # requirements-minecraft.txt
    "watch/server.py": {"starlette", "uvicorn"},  # the extra `watch`
}
"""Files that are imported late, where their packages are known to be there."""


def imported_with(file):
    """The packages of others that importing a file imports."""

    def at_once(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Import):
                yield from (alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield child.module
            elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from at_once(child)

    packages = {name.split(".")[0] for name in at_once(ast.parse(file.read_text()))}
    return packages - {*sys.stdlib_module_names, OURS}


def installed_with(requirements):
    """The distributions that pip installs for these requirements, those alone."""
    found, waiting = set(), [Requirement(line) for line in requirements]
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), *sorted(requirement.extras))
        if key not in found:
            found.add(key)
            needs = map(Requirement, metadata.requires(requirement.name) or ())
            extras = ["", *requirement.extras]
            waiting += [
                need
                for need in needs
                if need.marker is None or any(need.marker.evaluate({"extra": e}) for e in extras)
            ]
    return {name for name, *_ in found}


def test_what_is_imported_at_once_is_installed_with_the_package():
    """The tests' environment has more; a user's fails at `rllib train` if one is missing."""
    config = configparser.ConfigParser()
    config.read(PACKAGE.parent / "setup.cfg")
    installed = installed_with(config["options"]["install_requires"].split("\n")[1:])
    homes = metadata.packages_distributions()
    for file in PACKAGE.rglob("*.py"):
        layer = file.relative_to(PACKAGE).as_posix()
        for package in imported_with(file) - OPTIONAL.get(layer, set()):
            distributions = {canonicalize_name(name) for name in homes.get(package, ())}
            assert distributions & installed, f"{file} imports {package}"
