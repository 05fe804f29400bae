"""Archives that models are read from: damaged and too large ones are one error."""

from __future__ import annotations

import random
import zipfile
from io import BytesIO

import pytest

from relay.errors import Malformed
from relay.frontend.importing import archives
from relay.frontend.importing.archives import Zip

NAME = "graph.json"


def archive(method: int, content: bytes) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", method) as file:
        file.writestr(NAME, content)
    return stream.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_entries_are_one_error(method: int):
    """Bytes of the entry are others, its header and the directory are whole."""
    rng, whole, wrong = random.Random(method), archive(method, bytes(range(256)) * 20), 0
    start, end = 30 + len(NAME), whole.index(b"PK\x01\x02")
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 15)):
            data[rng.randrange(start, end)] = rng.randrange(256)
        try:
            found = Zip(bytes(data), "file", "")
            found.bytes(found.entries[NAME])
        except Malformed as error:
            wrong += 1
            what = "is damaged: its CRC-32 is another" if method == zipfile.ZIP_STORED else "cannot be read"
            assert f"the entry 'graph.json' {what}" in str(error) and str(error).endswith(archives.AGAIN)
    assert wrong > 30


def test_a_large_graph_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "MOST_JSON", 100)
    data = archive(zipfile.ZIP_DEFLATED, b"{}" + b" " * 99)
    with pytest.raises(Malformed, match=r"file: graph\.json has 101 bytes; at most 100 are read"):
        Zip(data, "file", "").json(NAME)
