"""The page: whole in one file, nothing from elsewhere, and nothing of a model is read as HTML."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from xdsl.utils.hints import isa

import relay
from relay.exploration import Exploration, Trial
from relay.module import IRModule
from relay.passes.timing import PassTimingInstrument
from relay.viewer import record, report
from relay.viewer.page import asset, live, script
from tests.unit.explore_modules import EVIL, Json, adds, evil, in_a_notebook, unpacked
from tests.unit.pass_modules import DIGITS


class Tags(HTMLParser):
    """What a browser finds in a text: tags with attributes, and text outside of scripts and styles."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(params=["live", "report"])
def page(request: pytest.FixtureRequest) -> str:
    return live("a model") if request.param == "live" else report(record(adds(), "cse"))


def test_nothing_is_loaded(page: str):
    found = Tags(page)
    assert not [a for tag, a in found.tags if "src" in a or (tag == "link" and a["rel"] != "icon")]
    assert all((a["href"] or "").startswith("data:") for tag, a in found.tags if tag == "link")
    assert not re.search(r"@import|url\(", asset("page.css"))
    assert set(re.findall(r"https?://[^\s'\"]+", page)) == {"http://www.w3.org/2000/svg"}


def test_only_its_own_script_and_style_may_run(page: str):
    [policy] = [a["content"] or "" for _, a in Tags(page).tags if a.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and "unsafe" not in policy
    for rule, tag in (("script-src", "script"), ("style-src", "style")):
        text = page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert rules["connect-src"] == ("'self'" if page == live("a model") else "'none'")
    assert not [a for _, a in Tags(page).tags if "style" in a or any(name.startswith("on") for name in a)]


def test_the_script_never_makes_html_of_text():
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser"):
        assert way not in script()


def test_a_report_has_all_that_the_page_asks_for():
    found = record(adds(), "cse,dce")
    content = unpacked(report(found))
    parts = content["parts"]
    assert isa(parts, Json)
    assert set(parts) == {"snapshot/0", "snapshot/1", "changes/0", "graph/0/0", "graph/1/0"}
    assert found.snapshots[1].text in str(content).replace("\\n", "\n")


def test_names_of_a_model_are_text():
    page = report(record(evil(), "cse", name=EVIL))
    plain = Tags(report(record(adds(), "cse", name="plain")))
    found = Tags(page)
    assert [tag for tag, _ in found.tags] == [tag for tag, _ in plain.tags]
    assert f"{EVIL} · relay explore" in found.words and EVIL not in page
    assert [tag for tag, _ in Tags(live(EVIL)).tags] == [tag for tag, _ in Tags(live("plain")).tags]
    assert EVIL in str(unpacked(page)["overview"]) or "window.pwned" in str(unpacked(page))


def test_a_report_is_the_same_each_time_but_for_the_times():
    def content() -> str:
        return re.sub(r"'seconds': [\d.e-]+", "", str(unpacked(report(record(adds(), "cse")))))

    assert content() == content()


def test_a_notebook_shows_a_module():
    mod = relay.frontend.from_tflite(DIGITS)
    shown = in_a_notebook(mod)
    found = Tags(shown)
    names = [tag for tag, _ in found.tags]
    assert "svg" in names and "pre" in names and "script" not in names
    assert any("qnn." in word for word in found.words) and "ops" in "".join(found.words)
    assert "dense_resource" in shown and len(shown) < 200_000
    assert "IRModule" in in_a_notebook(IRModule())


def test_a_notebook_shows_a_large_module_in_part():
    ops = "\n".join(
        "%0 = relay.negative %x : (tensor<2xf32>) -> tensor<2xf32>".replace("%0", f"%n{n}") for n in range(900)
    )
    mod = IRModule.parse(f"func.func @main(%x: tensor<2xf32>) {{\n{ops}\nfunc.return }}")
    shown = in_a_notebook(mod)
    assert "<svg" not in shown and "more lines" in shown and len(shown) < 100_000


def test_a_notebook_shows_an_exploration():
    trials = {
        "<b>": Trial("<b>", {}, (2.0,), 0.5),
        "slow": Trial("slow", {}, (3.0,), 0.5),
        "no": Trial("no", {}, (), 0.1, "<i>failed"),
    }
    shown = in_a_notebook(Exploration(trials, trials["<b>"], IRModule(), {}))
    assert "&lt;b&gt;" in shown and "<b>" not in shown and "+50.0%" in shown and "&lt;i&gt;failed" in shown


def test_a_notebook_shows_pipelines_times_and_records():
    pipeline = relay.default_pipeline()
    shown = in_a_notebook(pipeline)
    assert all(step.name in shown for step in pipeline) and "<table" in shown
    timing = PassTimingInstrument()
    with relay.transform.PassContext(instruments=[timing]):
        relay.transform.Pipeline.parse("cse,dce")(adds())
    assert re.search(r"cse</td>.*6 → 5.*dce</td>.*5 → 5", in_a_notebook(timing))
    frame = Tags(in_a_notebook(record(adds(), "cse")))
    [(tag, attributes)] = frame.tags
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"
    assert unpacked(attributes["srcdoc"] or "")["overview"]


def test_names_are_text_in_a_notebook_too():
    shown = [in_a_notebook(evil()), in_a_notebook(record(evil(), "cse", name=EVIL))]
    for text in shown:
        names = {tag for tag, _ in Tags(text).tags}
        assert "script" not in names and "img" not in names
        assert not [a for _, a in Tags(text).tags if any(name.startswith("on") for name in a)]
    assert "window.pwned" in "".join(Tags(shown[0]).words)
