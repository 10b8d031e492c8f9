"""A folder takes the place of another one, whole, whatever the system can do."""

import pytest

from mha_grader.course import exchange


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("there", [True, False])
def test_the_new_folder_is_there_and_the_old_one_is_gone(tmp_path, monkeypatch, can_exchange, there):
    if not can_exchange:
        monkeypatch.setattr(exchange, "_exchange", lambda one, other: False)
    new, place = tmp_path / "staged" / "a", tmp_path / "course" / "a"
    new.mkdir(parents=True)
    (new / "file.txt").write_text("new")
    if there:
        place.mkdir(parents=True)
        (place / "file.txt").write_text("old")
        (place / "left.txt").write_text("old")
    exchange.put_in_place(new, place)
    assert {path.name: path.read_text() for path in place.iterdir()} == {"file.txt": "new"}
    assert not any((tmp_path / "staged").iterdir())
