"""A folder takes the place of another one, whole, whatever the system can do."""

from concurrent.futures import ThreadPoolExecutor

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


def test_many_can_put_their_folder_in_one_place_at_once(tmp_path):
    place = tmp_path / "course" / "a"
    folders = [tmp_path / str(number) / "a" for number in range(20)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "file.txt").write_text(folder.parent.name)
    with ThreadPoolExecutor(len(folders)) as threads:
        list(threads.map(lambda folder: exchange.put_in_place(folder, place), folders))
    (file,) = place.iterdir()
    assert file.read_text() in map(str, range(20))
    assert not any(folder.exists() for folder in folders)
