"""The packaging: three folders at the top level install as one package, complete."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = {"srcgrad": "srcgrad", "srcgrad.transforms": "transforms", "srcgrad.runtime": "runtime"}


def settings() -> dict[str, object]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        return dict(tomllib.load(file)["tool"]["setuptools"])


def modules() -> set[str]:
    """All Python files of the package, by the paths at which they install."""
    found = set()
    for package, folder in FOLDERS.items():
        for directory, _, files in os.walk(ROOT / folder):  # links are not followed
            inside = Path(directory).relative_to(ROOT / folder)
            place = Path(*package.split("."), inside)
            found |= {(place / file).as_posix() for file in files if file.endswith((".py", ".typed"))}
    return found


def test_packages_are_listed() -> None:
    """An editable install works without: only the wheel would lack the package."""
    folders = {str(Path(path).parent).replace("/", ".") for path in modules()}
    listed = settings()["packages"]
    assert isinstance(listed, list)
    assert sorted(listed) == sorted(folders), "[tool.setuptools] packages of pyproject.toml"


def test_every_folder_is_a_package() -> None:
    for path in modules():
        assert str(Path(path).parent / "__init__.py") in modules()


def test_mapping() -> None:
    assert settings()["package-dir"] == FOLDERS


@pytest.mark.parametrize("name", ["transforms", "runtime"])
def test_links(name: str) -> None:
    """Relative ones, by which type checkers, editors and a plain `python` at the root find the floors."""
    link = ROOT / "srcgrad" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../{name}"
    assert (link / "__init__.py").is_file()


def test_wheel_contains_every_module(tmp_path: Path) -> None:
    """Built from a copy, so that nothing is left in the folders, and without the links, as on Windows."""
    for folder in FOLDERS.values():
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True)
    for link in ("transforms", "runtime"):
        (tmp_path / "srcgrad" / link).unlink()
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, tmp_path)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "out", "."]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = (tmp_path / "out").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if ".dist-info/" not in name} == modules()
    assert any(name.endswith("licenses/LICENSE") for name in names)
