"""The memory plan: pieces that live at once never overlap, those that do not share memory."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from relay.lowering.plan_memory import Piece, place
from relay.target import resolve

ALIGNMENT = SLACK = 64
"""Where vectors are 64 bytes at most."""
room_of = resolve("x86_64").room_of


def pieces(*rows: tuple[int, int, int]) -> list[Piece]:
    return [Piece(f"p{number}", size, room_of(size), first, last) for number, (size, first, last) in enumerate(rows)]


lives = st.tuples(st.integers(0, 5000), st.integers(0, 20), st.integers(0, 8)).map(lambda t: (t[0], t[1], t[1] + t[2]))


@given(st.lists(lives, max_size=30))
def test_what_lives_at_once_does_not_overlap(rows: list[tuple[int, int, int]]):
    every = pieces(*rows)
    total = place(every)
    for piece in every:
        assert piece.offset >= 0 and piece.offset % ALIGNMENT == 0
        assert piece.offset + piece.size + SLACK <= total
    for a, b in combinations(every, 2):
        if a.first <= b.last and b.first <= a.last:
            assert a.offset + a.size + SLACK <= b.offset or b.offset + b.size + SLACK <= a.offset


@given(st.lists(lives, max_size=30))
def test_the_arena_is_no_larger_than_all_pieces_and_no_smaller_than_the_most_at_once(rows: list[tuple[int, int, int]]):
    every = pieces(*rows)
    total = place(every)
    room = {piece.name: room_of(piece.size) for piece in every}
    together = [sum(room[p.name] for p in every if p.first <= now <= p.last) for now in range(30)]
    assert max(together, default=0) <= total <= sum(room.values())


@given(st.lists(lives, max_size=12), st.randoms(use_true_random=False))
def test_the_plan_depends_on_no_order(rows: list[tuple[int, int, int]], random: Random):
    first, second = pieces(*rows), pieces(*rows)
    shuffled = second.copy()
    random.shuffle(shuffled)
    assert place(first) == place(shuffled)
    assert [piece.offset for piece in first] == [piece.offset for piece in second]


def test_a_chain_needs_two_buffers():
    every = pieces(*((1000, number, number + 1) for number in range(10)))
    assert place(every) == 2 * room_of(1000)
    assert {piece.offset for piece in every} == {0, room_of(1000)}


def test_a_small_piece_fills_a_gap():
    large, late, small = every = pieces((4000, 0, 1), (3000, 1, 3), (900, 2, 3))
    assert place(every) == late.end
    assert (large.offset, late.offset, small.offset) == (0, large.end, 0)


def test_rooms():
    """Vectors touch what is behind a buffer; scalars do not."""
    assert [room_of(size) for size in (0, 1, 64, 65)] == [64, 128, 128, 192]
    assert [resolve("cortex-m3").room_of(size) for size in (0, 1, 8, 9)] == [0, 8, 8, 16]


@given(st.lists(lives, max_size=14), st.data())
def test_results_overlap_inputs_only_as_far_as_they_may(rows: list[tuple[int, int, int]], data: st.DataObject):
    every = pieces(*rows)
    plain = place(every)
    pairs = [(a, b) for a in every for b in every if a.first == b.last and b.first < a.first]
    steps = st.integers(-100, 100).map(lambda number: number * ALIGNMENT)
    distances = {(a.name, b.name): data.draw(steps) for a, b in pairs}
    assert place(every, distances) <= plain
    for a, b in combinations(every, 2):
        if (
            a.first <= b.last
            and b.first <= a.last
            and not (a.offset + a.size + SLACK <= b.offset or b.offset + b.size + SLACK <= a.offset)
        ):
            result, input = (a, b) if (a.name, b.name) in distances else (b, a)
            assert result.offset + distances[result.name, input.name] <= input.offset


def test_a_chain_needs_one_buffer_where_results_overlap_inputs():
    every = pieces(*((1000, number, number + 1) for number in range(10)))
    names = [piece.name for piece in every]
    assert place(every, {(b, a): 0 for a, b in pairwise(names)}) == room_of(1000)
    assert place(every, {(b, a): 64 for a, b in pairwise(names)}) == room_of(1000) + 9 * 64


def test_nothing_needs_nothing():
    assert place([]) == 0
