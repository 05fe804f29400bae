"""Check the memory plan: whatever a kernel reads is an input, or was written at that place by an earlier kernel, and
was not overwritten since."""

from __future__ import annotations

from collections.abc import Sequence

from relay.validation.claims import Call, Move, Place


def contradictions(calls: Sequence[Call | Move], inputs: Sequence[Place], outputs: Sequence[Place]) -> list[str]:
    """Check the places of a program's tensors; return a sentence for each contradiction. Every call must read only
    tensors that are complete, and must not overwrite data that it or a later call reads."""
    alive = list(inputs)
    found: list[str] = []

    def read(who: str, place: Place) -> None:
        if not any(holds(each, place) for each in alive):
            found.append(f"{who} reads {named(place)}, which no kernel wrote, or another wrote over")

    for call in calls:
        written = [*call.results, *call.scratch]
        for place in call.operands.values():
            read(call.kernel, place)
            if any(place.overlaps(other) for other in written):
                found.append(f"{call.kernel} writes where it reads, at {named(place)}")
        for number, place in enumerate(written):
            if any(place.overlaps(other) for other in written[:number]):
                found.append(f"{call.kernel} writes two tensors to {named(place)}")
        alive = [each for each in alive if not any(each.overlaps(place) for place in written)]
        alive += call.results
    for place in outputs:
        read("the caller", place)
    return found


def holds(whole: Place, part: Place) -> bool:
    """Whether `part` lies within the place `whole`."""
    first, last = whole.offset, whole.offset + whole.bytes
    return whole.argument == part.argument and first <= part.offset and part.offset + part.bytes <= last


def named(place: Place) -> str:
    """The text that describes a place in messages."""
    where = "the arena" if place.argument < 0 else f"argument {place.argument}"
    return f"{place.bytes} bytes at {place.offset} of {where}"
