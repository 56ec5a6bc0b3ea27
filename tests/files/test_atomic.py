"""Files are written whole or not at all, and keep the permissions that they had."""

import os
import stat

import pytest

from rfrboost._files.atomic import atomic_stream, write_atomically


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    """Sets the umask for one test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def test_a_file_is_created_and_replaced(tmp_path):
    path = tmp_path / "m"
    write_atomically(path, b"first")
    write_atomically(str(path), b"second")
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_appears_before_the_block_ends(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"earlier")
    with atomic_stream(path) as stream:
        stream.write(b"later")
        stream.flush()
        assert path.read_bytes() == b"earlier"
    assert path.read_bytes() == b"later"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_whatever_stops_the_writing_leaves_what_was_there(error, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"earlier")

    def stopped():
        with atomic_stream(path) as stream:
            stream.write(b"half")
            raise error

    with pytest.raises(error):
        stopped()
    assert path.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_rename_leaves_what_was_there_and_names_the_file(tmp_path, monkeypatch):
    path = tmp_path / "m"
    path.write_bytes(b"earlier")

    def refuse(source, target):
        raise PermissionError(13, "Permission denied", source, None, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError) as caught:
        write_atomically(path, b"later")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "none" / "m"
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(path, b"")
    assert caught.value.filename == str(path)


def test_a_symbolic_link_stays_one(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"earlier")
    link = tmp_path / "link"
    link.symlink_to(path)
    write_atomically(link, b"later")
    assert link.is_symlink()
    assert path.read_bytes() == b"later"


def test_what_is_not_a_file_is_refused(tmp_path):
    for path in (tmp_path, os.devnull):
        with pytest.raises(ValueError, match="not a file"):
            write_atomically(path, b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o400])
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_replaced_file_keeps_its_permissions(mode, mask, tmp_path, umask):
    path = tmp_path / "m"
    path.write_bytes(b"earlier")
    path.chmod(mode)
    umask(mask)
    with atomic_stream(path) as stream:
        (temporary,) = (file for file in tmp_path.iterdir() if file != path)
        assert mode_of(temporary) == mode
        stream.write(b"later")
    assert mode_of(path) == mode
    assert path.read_bytes() == b"later"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_permissions_of_the_umask(mask, tmp_path, umask):
    umask(mask)
    write_atomically(tmp_path / "m", b"new")
    assert mode_of(tmp_path / "m") == 0o666 & ~mask
