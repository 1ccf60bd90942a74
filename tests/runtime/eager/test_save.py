"""Files: what can't be read says why, and no code from a file is run unasked."""

from __future__ import annotations

import pickle
import zipfile

import pytest

import srcgrad as sg


class Command:
    def __reduce__(self):
        return print, ("code from a file ran",)


def test_no_code_is_run_on_load(tmp_path, capsys):
    path = tmp_path / "objects.pt"
    sg.save({"object": Command()}, path)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        sg.load(path)
    assert capsys.readouterr().out == ""
    sg.load(path, weights_only=False)
    assert capsys.readouterr().out == "code from a file ran\n"


def test_other_files_are_named_as_such(tmp_path):
    text, archive = tmp_path / "text.pt", tmp_path / "archive.pt"
    text.write_text("no archive")
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("archive/data.pkl", b"")
    for path in (text, archive):
        with pytest.raises(pickle.UnpicklingError, match="Not a file that `save` wrote"):
            sg.load(path)
    with pytest.raises(FileNotFoundError):
        sg.load(tmp_path / "nowhere.pt")


def test_anomaly_mode_names_the_users_line():
    x = sg.tensor([-1.0], requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection"), sg.autograd.detect_anomaly():
        y = x.sqrt()  # the culprit
        with (
            pytest.warns(UserWarning, match=r"y = x\.sqrt\(\)  # the culprit") as caught,
            pytest.raises(RuntimeError, match="returned nan values in its 0th output"),
        ):
            y.backward()
    assert caught[0].filename == __file__
