"""Every link between pages leads somewhere, to the very heading; no page is out of reach."""

import re
from fnmatch import fnmatch
from functools import cache

from tests.docs.pages import COMMITTED, DOCS, PAGES, ROOT, anchors, blocks, without_code
from tools.reference.pages import PAGES as GENERATED

LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"\bdocs/(\w+\.md)")
"""How code and experiment files name a page."""

SOURCES = [
    *sorted((ROOT / "rllib_minestudio").rglob("*.py")),
    *sorted((ROOT / "benchmarks").rglob("*.py")),
    *sorted((ROOT / "tuned_examples").glob("*.yaml")),
]


def test_links_lead_to_files_and_headings():
    texts = {page: page.read_text() for page in PAGES}
    texts |= {DOCS / name: page() for name, page in GENERATED.items()}
    headings = cache(lambda file: anchors(texts[file] if file in texts else file.read_text()))
    dead = []
    for page, text in texts.items():
        for target in LINK.findall(without_code(text)):
            path, _, anchor = target.partition("#")
            if re.match(r"https?:", target):
                continue
            file = (page.parent / path).resolve() if path else page
            is_there = file.exists() and file not in texts
            is_there |= file in texts and (file.name not in GENERATED or page.name in GENERATED)
            if not is_there or (anchor and anchor not in headings(file)):
                dead.append((page.name, target))
    assert not dead


def test_links_call_pages_by_their_titles():
    named = re.compile(r"\[`?\w+\.md`?\]\(\w+\.md")
    found = {page.name: named.findall(page.read_text()) for page in COMMITTED}
    assert not {page: links for page, links in found.items() if links}


def test_dead_links_would_be_found():
    assert LINK.findall("a [b](c.md#d), ![e](f.png)") == ["c.md#d", "f.png"]
    assert "[x](y)" not in without_code("```bash\n[x](y)\n```\n and `[x](y)`")
    assert anchors("# A b: `c`\n## A\n```\n# no\n```\n## A\n") == {"a-b-c", "a", "a-1"}


def test_code_names_pages_that_exist():
    named = {
        (name, source.name) for source in SOURCES for name in NAMED.findall(source.read_text())
    }
    assert len(named) > 20
    assert not [found for found in named if not (DOCS / found[0]).is_file()]


def test_the_navigation_holds_every_page_once():
    listed = [
        line
        for block in re.findall(
            r"^```\{toctree\}\n(.*?)^```", (DOCS / "index.md").read_text(), re.M | re.S
        )
        for line in block.split("\n")
        if line and not line.startswith(":")
    ]
    pages = {page.stem for page in COMMITTED} | {name.removesuffix(".md") for name in GENERATED}
    pages -= {"index"}
    assert not [name for name in listed if "*" not in name and name not in pages]
    assert {page: sum(fnmatch(page, name) for name in listed) for page in pages} == dict.fromkeys(
        pages, 1
    )


def test_the_tutorials_are_among_the_pages_with_code():
    assert blocks((DOCS / "first_task.md").read_text(), "bash")
