"""The fuzz target finds nothing, and would find what it looks for."""

from tools import fuzz_files


def test_some_mutants():
    """CI loads more of them, with ``make fuzz``."""
    found = fuzz_files.fuzz(100, seed=3)
    assert found.faults == []
    assert found.outcomes["refused"] > 50
    assert found.outcomes["loaded"] > 0


def test_wrong_exceptions_and_large_loads_are_found(monkeypatch, tmp_path):
    def broken(data):
        if len(data) % 2:
            raise KeyError(0)
        return bytearray(2**20)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fuzz_files, "MOST_MEMORY", 2**19)
    monkeypatch.setattr(fuzz_files.container, "unpack", broken)
    monkeypatch.setattr(fuzz_files, "from_state", len)
    found = fuzz_files.fuzz(100, seed=0)
    assert len(found.faults) == 100
    assert any("KeyError" in fault for fault in found.faults)
    assert any("loaded; " in fault for fault in found.faults)
    assert len(list((tmp_path / "fuzz-findings").iterdir())) == 100
