"""The repository keeps the shape that CONTRIBUTING.md and docs/decisions describe."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TRACKED = [
    Path(name)
    for name in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    if (ROOT / name).is_file()
]
PROSE = [path for path in TRACKED if path.suffix == ".md"]


def test_no_top_level_folder_is_a_package():
    assert [path for path in TRACKED if path.name == "__init__.py" and len(path.parts) == 2] == []


def test_no_place_is_named_for_nothing():
    nothing = {"utils", "util", "helpers", "common", "misc", "manager", "base"}
    assert [
        path for path in TRACKED if path.suffix in {".py", ".go", ".cu", ".h"} and nothing & {path.stem, *path.parts}
    ] == []


def test_decision_records_are_numbered_once():
    numbers = Counter(path.name[:4] for path in TRACKED if path.parts[:2] == ("docs", "decisions"))
    assert [number for number, count in numbers.items() if count > 1 or not number.isdigit()] == []


@pytest.mark.parametrize("page", PROSE, ids=str)
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", (ROOT / page).read_text())
    assert [target for target in targets if not (ROOT / page.parent / target).exists()] == []


def test_the_project_stands_alone():
    elsewhere = re.compile(rf"\.\./shared/|{re.escape(str(ROOT))}/|/root/")
    text_of = {
        path: (ROOT / path).read_text(errors="ignore") for path in TRACKED if path.suffix not in {".flac", ".wav"}
    }
    assert [
        path for path, text in text_of.items() if path != Path(__file__).relative_to(ROOT) and elsewhere.search(text)
    ] == []
