"""Which errors of an import are reported, and as what."""

import pytest

from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.frontend.importing.builder import Place
from relay.frontend.importing.problems import Problems


class Step(Place):
    """A node of a file that is not there."""

    file = "m.onnx"

    @property
    def number(self) -> int:
        return 7

    @property
    def title(self) -> str:
        return "node 7 Abs"


@pytest.mark.parametrize("error", [Malformed, InvalidArgument])
def test_errors_behind_the_first_problem_are_not_reported(error: type[RelayError]):
    """Behind a node that cannot be imported, shapes are guesses: what fails for them says nothing of the file."""

    def fails() -> None:
        raise error("relay.abs", "has the wrong shape")

    problems = Problems("m.onnx")
    with pytest.raises(Malformed, match="wrong shape"):
        problems.tried(Step(), fails)
    problems.add("m.onnx: node 3 Frob", "is not supported")
    assert problems.tried(Step(), fails) is None
    with pytest.raises(Unsupported, match="^m.onnx: node 3 Frob: is not supported$"):
        problems.raise_all()
