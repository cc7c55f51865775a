"""The notebook of the first quarter of an hour: it runs, and is committed as it is to be read."""

import json

import pytest

from tests.docs.pages import DOCS
from tests.docs.test_links import LINK

NOTEBOOK = DOCS / "first_quarter_hour.ipynb"
SHORTER = {"TRAINING_SECONDS": "1", "EPISODE_STEPS": "20"}


def cells(kind):
    """The notebook's cells of a kind, and their text."""
    found = [
        cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == kind
    ]
    return found, ["".join(cell["source"]) for cell in found]


def test_it_is_committed_without_outputs():
    assert {len(cell["outputs"]) for cell in cells("code")[0]} == {0}
    assert {cell["execution_count"] for cell in cells("code")[0]} == {None}


def test_it_says_how_to_shorten_it_and_its_links_lead_to_pages():
    assert all(f'"{variable}"' in cells("code")[1][0] for variable in SHORTER)
    links = [link for text in cells("markdown")[1] for link in LINK.findall(text)]
    assert len(links) > 3 and all((DOCS / link).is_file() for link in links)


@pytest.mark.slow
def test_it_runs(tmp_path, monkeypatch):
    nbclient = pytest.importorskip(
        "nbclient", reason="needs pip install rllib-minestudio[notebook]"
    )
    import nbformat

    for variable, value in SHORTER.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)  # it starts a Ray of its own
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    where = {"metadata": {"path": tmp_path}}
    nbclient.NotebookClient(notebook, kernel_name="python3", resources=where).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    printed = "".join(output["text"] for output in outputs if output["output_type"] == "stream")
    shown = [kind for output in outputs for kind in output.get("data", {})]
    assert "hunter_nano" in printed and "Warning" not in printed
    assert shown.count("image/png") == 2  # a frame and the curve
    assert any(
        "<video" in output["data"].get("text/html", "") for output in outputs if "data" in output
    )
    assert (tmp_path / "results" / "first_quarter_hour.mp4").stat().st_size > 0
