"""The command that installs an extra, however klamm was installed."""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from klamm.settings.extras import installing


class Installed:
    def __init__(self, origin: dict[str, Any] | None) -> None:
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "a clone"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    return folder


def message(monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None) -> str:
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(origin))
    monkeypatch.setattr("shutil.which", lambda name: str(Path(sys.executable).with_name("pip")))
    return installing("capture")


@pytest.mark.parametrize(("editable", "option"), [({}, ""), ({"editable": True}, "-e ")])
def test_from_a_clone_it_is_the_clone_that_is_named(
    editable: dict[str, bool], option: str, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = {"url": clone.as_uri(), "dir_info": editable}
    assert message(monkeypatch, origin) == f"pip install {option}'{clone}[capture]'"
    monkeypatch.chdir(clone)
    assert message(monkeypatch, origin) == f"pip install {option}'.[capture]'"


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (None, "'klamm[capture]'"),
        ({"url": "file:///nowhere/at/all", "dir_info": {}}, "'klamm[capture]'"),
        (
            {"url": "https://example.com/klamm.git", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            "'klamm[capture] @ git+https://example.com/klamm.git'",
        ),
        (
            {"url": "file:///srv/klamm-0.1.0-py3-none-any.whl", "archive_info": {}},
            "'klamm[capture] @ file:///srv/klamm-0.1.0-py3-none-any.whl'",
        ),
    ],
)
def test_from_elsewhere_it_is_where_klamm_came_from(
    origin: dict[str, Any] | None, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert message(monkeypatch, origin) == f"pip install {wanted}"


@pytest.mark.parametrize("found", [None, "/usr/bin/pip"])
def test_a_pip_of_another_python_is_not_advised(found: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: found)
    assert installing("spark").startswith(f"{sys.executable} -m pip install ")
