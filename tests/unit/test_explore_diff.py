"""What is shown as changed: lines are equal up to the numbers of values, and only if they mean the same values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relay.module import IRModule
from relay.viewer import record
from relay.viewer.dataflow import Graph
from relay.viewer.diff import diff
from relay.viewer.snapshot import Part, Snapshot, take
from tests.unit.explore_modules import adds


def text_of(*functions: str) -> Snapshot:
    """A snapshot of which only the text matters: a function each, named f0, f1, ..."""
    lines = ["builtin.module {"]
    parts: list[Part] = []
    for number, body in enumerate(functions):
        inner = [line.strip() for line in body.splitlines() if line.strip()]
        parts.append(Part(f"f{number}", (len(lines), len(lines) + len(inner)), 1, "", Graph((), ())))
        lines += inner
    return Snapshot("\n".join([*lines, "}"]) + "\n", {}, [], [], parts)


def changed(before: Snapshot, after: Snapshot) -> tuple[list[str], list[str]]:
    """The lines taken away, and those added."""
    hunks = [hunk for hunk in diff(before, after) if not hunk.equal]
    return (
        [line for hunk in hunks for line in before.lines[slice(*hunk.before)]],
        [line for hunk in hunks for line in after.lines[slice(*hunk.after)]],
    )


def test_equal():
    one = text_of("%0 = a\n%1 = b %0")
    assert changed(one, one) == ([], []) and len(diff(one, one)) == 1


def test_other_numbers_are_equal():
    assert changed(text_of("%0 = a\n%1 = b %0"), text_of("%7 = a\n%8 = b %7")) == ([], [])


def test_a_line_taken_away_renumbers_the_rest_and_no_more():
    before, after = text_of("%0 = x\n%1 = a\n%2 = b %1"), text_of("%0 = a\n%1 = b %0")
    assert changed(before, after) == (["%0 = x"], [])


def test_another_value_is_a_change():
    before = text_of("%0 = a\n%1 = b\n%2 = c %0, %1")
    assert changed(before, text_of("%0 = a\n%1 = b\n%2 = c %1, %0")) == (["%2 = c %0, %1"], ["%2 = c %1, %0"])
    assert changed(before, text_of("%0 = a\n%1 = b\n%2 = c %0, %0")) == (["%2 = c %0, %1"], ["%2 = c %0, %0"])


def test_one_of_two_equal_values_is_shown_with_its_uses():
    before, after = text_of("%0 = a\n%1 = a\n%2 = c %0, %1"), text_of("%0 = a\n%1 = c %0, %0")
    removed, added = changed(before, after)
    assert removed in (["%0 = a", "%2 = c %0, %1"], ["%1 = a", "%2 = c %0, %1"]) and added == ["%1 = c %0, %0"]


def test_of_equal_lines_the_one_of_the_same_name_stays():
    before, after = text_of("%x = a\n%y_1 = a\n%2 = c %y_1"), text_of("%y = a\n%1 = c %y")
    assert changed(before, after) == (["%x = a"], [])


def test_a_use_of_a_value_that_is_made_otherwise_is_equal():
    assert changed(text_of("%0 = qnn.a\n%1 = b %0"), text_of("%0 = x\n%5 = a %0\n%1 = b %5"))[0] == ["%0 = qnn.a"]


def test_strings_are_no_names():
    assert changed(text_of('%0 = a {l = "%5"}'), text_of('%0 = a {l = "%6"}')) == (
        ['%0 = a {l = "%5"}'],
        ['%0 = a {l = "%6"}'],
    )


def test_names_begin_anew_in_each_function():
    one, other = "%0 = a\n%1 = b %0", "%4 = a\n%5 = b %4"
    assert changed(text_of(one, one), text_of(other, one)) == ([], [])


def test_lines_of_other_functions_are_never_equal():
    before, after = text_of("%0 = a\n%1 = b"), text_of("%0 = x", "%0 = a\n%1 = b")
    assert changed(before, after) == (["%0 = a", "%1 = b"], ["%0 = x", "%0 = a", "%1 = b"])


BODIES = st.lists(
    st.lists(st.sampled_from(["%0 = a", "%1 = b %0", "%2 = b %1", "c %2", "%0 = a %0", "}"]), min_size=1, max_size=8),
    max_size=3,
)


@given(BODIES, BODIES)
def test_the_hunks_are_all_lines_of_both(before: list[list[str]], after: list[list[str]]):
    old, new = text_of(*map("\n".join, before)), text_of(*map("\n".join, after))
    hunks = diff(old, new)
    assert [line for hunk in hunks for line in old.lines[slice(*hunk.before)]] == old.lines
    assert [line for hunk in hunks for line in new.lines[slice(*hunk.after)]] == new.lines
    for hunk in hunks:
        assert hunk.before != hunk.after or hunk.before[0] < hunk.before[1]
        if hunk.equal:
            assert hunk.before[1] - hunk.before[0] == hunk.after[1] - hunk.after[0]
    assert all(a.equal != b.equal for a, b in zip(hunks, hunks[1:], strict=False))
    same = old.text == new.text and [part.lines for part in old.parts] == [part.lines for part in new.parts]
    assert all(hunk.equal for hunk in hunks) or not same


def test_what_cse_does():
    found = record(adds(), "cse")
    removed, added = changed(found.snapshots[0], found.snapshots[1])
    assert [line.strip().partition(" = ")[0] for line in removed] == ["%b", "%c"]
    assert [line.strip().partition(" : ")[0] for line in added] == ["%c = relay.add %a, %a"]


def test_an_empty_module():
    assert changed(take(IRModule()), take(IRModule())) == ([], [])
