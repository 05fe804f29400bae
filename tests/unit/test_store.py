"""The folder of compiled code: what is put is found, by several writers, in bounds, and damage is a miss."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from relay.errors import InvalidArgument
from relay.store import SUM_BYTES, Entry, Store, key_of, store


def test_what_is_put_is_found(tmp_path: Path):
    kept = Store(tmp_path / "a" / "b")
    assert kept.get("key") is None
    kept.put("key", b"data")
    kept.put("empty", b"")
    assert (kept.get("key"), kept.get("empty"), kept.get("other")) == (b"data", b"", None)
    kept.put("key", b"new")
    assert kept.get("key") == b"new" and sorted(os.listdir(kept.folder)) == ["empty", "key"]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "grow"])
def test_damage_is_a_miss(damage: str, tmp_path: Path):
    kept = Store(tmp_path)
    kept.put("key", b"some bytes")
    data = (tmp_path / "key").read_bytes()
    bad = {"cut": data[:-1], "flip": data[:-1] + b"\0", "empty": b"", "grow": data + b"x"}[damage]
    (tmp_path / "key").write_bytes(bad)
    assert kept.get("key") is None and not (tmp_path / "key").exists()
    kept.put("key", b"again")
    assert kept.get("key") == b"again"


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path):
    kept, keys = Store(tmp_path, 4 * (SUM_BYTES + 100)), [key_of("test", str(number)) for number in range(6)]
    for number, key in enumerate(keys[:4]):
        kept.put(key, bytes(100))
        os.utime(tmp_path / key, (number, number))
    assert kept.get(keys[0]) is not None
    kept.put(keys[4], bytes(100))
    assert sorted(os.listdir(tmp_path)) == sorted([keys[0], *keys[2:5]])
    kept.put(keys[5], bytes(10_000))
    assert os.listdir(tmp_path) == []


def test_a_large_folder_is_listed_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kept, listed = Store(tmp_path, 1000 * (SUM_BYTES + 100)), list[int]()
    entries = Store.entries

    def noted(of: Store) -> list[Entry]:
        found = entries(of)
        listed.append(len(found))
        return found

    monkeypatch.setattr(Store, "entries", noted)
    for number in range(2000):
        kept.put(key_of("test", str(number)), bytes(100))
    assert 2 * 64 / 2 < len(listed) < 2 * 64 * 2
    assert 1000 <= len(os.listdir(tmp_path)) <= max(listed) < 1100


def test_what_a_killed_writer_left_goes_and_files_of_others_stay(tmp_path: Path):
    others = ["thesis.tex", ".bashrc", "build-notes", f".{key_of('build', 'x')}.orig"]
    left = f".{key_of('build', 'x')}.12.345"
    for name in (*others, left):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (0, 0))
    Store(tmp_path, SUM_BYTES + 150).put(key_of("build", "y"), bytes(100))
    assert sorted(os.listdir(tmp_path)) == sorted([*others, key_of("build", "y")])


def test_a_file_system_that_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Store(tmp_path).put("key", b"data")

    def refuse(path: Path) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    assert Store(tmp_path).get("key") == b"data"


def test_writers_at_once(tmp_path: Path):
    kept = Store(tmp_path, 20_000)
    wrong: list[bytes] = []

    def work(number: int) -> None:
        for turn in range(60):
            key = str((number + turn) % 7)
            kept.put(key, key.encode() * 1000)
            found = kept.get(str(turn % 7))
            if found is not None and found != str(turn % 7).encode() * 1000:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and sorted(os.listdir(tmp_path)) == [str(number) for number in range(7)]


def test_a_folder_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").write_text("")
    kept = Store(tmp_path / "file" / "folder")
    kept.put("key", b"data")
    assert kept.get("key") is None


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", "off")
    assert store() is None
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("RELAY_CACHE_BYTES", "123")
    assert store() == Store(tmp_path / "mine", 123)
    monkeypatch.delenv("RELAY_CACHE_DIR")
    monkeypatch.setenv("RELAY_CACHE_BYTES", "1G")
    with pytest.raises(InvalidArgument, match="^RELAY_CACHE_BYTES: is '1G'; write a number of bytes"):
        store()
    monkeypatch.delenv("RELAY_CACHE_BYTES")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store() == Store(tmp_path / "relay")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store() == Store(tmp_path / ".cache" / "relay")


def test_a_file_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "x"):
        monkeypatch.setenv("RELAY_CACHE_DIR", str(path))
        assert store() is None


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path / "shared"))
    (tmp_path / "shared").mkdir()
    assert store() is not None
    (tmp_path / "shared").chmod(0o777)
    assert store() is None


def test_nobody_else_can_write_to_what_is_kept(tmp_path: Path):
    mask = os.umask(0)
    try:
        Store(tmp_path / "new").put("key", b"data")
    finally:
        os.umask(mask)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "new", tmp_path / "new" / "key")] == [0o700, 0o600]


def foreign(path: Path, how: str) -> None:
    """Make the file of a key what another user could have put there."""
    if how == "mode":
        path.chmod(0o666)
    elif how == "key":
        path.rename(path.with_name("asked"))
    elif how == "link":
        path.rename(path.with_name("elsewhere"))
        path.symlink_to("elsewhere")
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif how == "owner":
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        os.chown(path, 12345, -1)
    elif how == "folder":
        path.parent.chmod(0o777)


@pytest.mark.parametrize("how", ["mode", "key", "link", "pipe", "owner", "folder"])
def test_files_of_others_are_not_taken(how: str, tmp_path: Path):
    kept = Store(tmp_path / "cache")
    kept.put("key", b"data")
    foreign(tmp_path / "cache" / "key", how)
    assert kept.get("asked" if how == "key" else "key") is None
    if how not in ("key", "folder"):
        kept.put("key", b"ours")
        assert kept.get("key") == b"ours"


def test_keys_tell_their_parts_apart():
    assert key_of("a", "bc", "d") != key_of("a", "b", "cd") != key_of("a", "bcd")
    assert key_of("a", "b") == key_of("a", b"b") != key_of("c", "b")
