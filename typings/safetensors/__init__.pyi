from typing import TypedDict

class SafetensorError(Exception): ...

class Entry(TypedDict):
    dtype: str
    shape: list[int]
    data: bytes

def deserialize(bytes: bytes) -> list[tuple[str, Entry]]: ...
