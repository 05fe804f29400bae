"""The page in a real browser: what a user sees, edits and runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from operator import methodcaller
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="needs playwright, which drives a browser")
pytest.importorskip("starlette", reason="needs the extra explore: pip install 'relay-mlir[explore]'")
pytest.importorskip("uvicorn", reason="needs the extra explore: pip install 'relay-mlir[explore]'")

from playwright.sync_api import Browser, Page, expect, sync_playwright

from relay.__main__ import main
from relay.module import IRModule
from relay.viewer import record, report
from tests.unit.explore_modules import EVIL, TOKEN, adds, evil, served
from tests.unit.test_explore_graph import BUFFERS, BYOC

pytestmark = pytest.mark.ci
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
TABS = ("changes", "text", "graph", "kinds")


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    installed = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as driver:
        path = installed or driver.chromium.executable_path
        if not os.path.exists(path):
            pytest.skip("no Chromium is installed: apt-get install chromium, or playwright install chromium")
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        found = driver.chromium.launch(executable_path=path, args=options)
        yield found
        found.close()


@pytest.fixture
def page(browser: Browser) -> Generator[Page]:
    """A page on which no script may fail, and which may load nothing from elsewhere."""
    faults: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    found = context.new_page()
    found.set_default_timeout(20_000)
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)
    found.on("request", lambda asked: faults.append(asked.url) if not re.match(LOCAL, asked.url) else None)
    yield found
    context.close()
    assert faults == []


LOCAL = r"http://127\.0\.0\.1:|file:|data:"


def opened(page: Page, port: int) -> None:
    """Open the page of a server and wait for its first record."""
    page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
    expect(page.locator("li.step.ran").first).to_be_visible()
    settled(page)


def settled(page: Page) -> None:
    """Wait for the view."""
    expect(page.locator("#view:not([aria-busy])")).to_have_count(1)


def shown(page: Page, tab: str) -> None:
    page.click(f"[data-tab={tab}]")
    settled(page)


def test_edit_the_pipeline_and_run_it_again(page: Page):
    with served(adds(), "dce") as client:
        opened(page, client.port)
        expect(page.locator("#facts")).to_contain_text("6 → 6 ops")
        expect(page.locator("#view")).to_contain_text("The module as it came")
        page.click("#add")
        page.fill(".chooser input", "cse")
        page.keyboard.press("Enter")
        expect(page.locator("li.step.new")).to_contain_text("cse")
        expect(page.locator("#edited")).to_be_visible()
        page.click("#run")
        expect(page.locator("#facts")).to_contain_text("6 → 5 ops")
        expect(page.locator("#edited")).to_be_hidden()
        page.click("li.step:has-text('cse')")
        expect(page.locator(".row.removed")).to_have_count(2)
        expect(page.locator(".row.added")).to_contain_text("relay.add %a, %a")


def test_edit_as_text_reorder_remove_revert(page: Page):
    with served(adds(), "cse,dce,infer-types") as client:
        opened(page, client.port)
        names = page.locator("li[data-place] .name")
        page.click("li.step:has-text('infer-types')")
        page.locator("#steps").focus()
        page.keyboard.press("Alt+ArrowUp")
        expect(names).to_have_text(["cse", "infer-types", "dce"])
        expect(page.locator("li.picked .name")).to_have_text("infer-types")
        page.keyboard.press("Delete")
        expect(names).to_have_text(["cse", "dce"])
        page.click("#as-text")
        expect(page.locator("#text")).to_have_value("cse,dce")
        page.fill("#text", "dce,fold-constant{max_bytes=1024}")
        expect(names).to_have_text(["dce", "fold-constant"])
        expect(page.locator("li.new .options")).to_have_text("{max_bytes=1024}")
        page.keyboard.press("Control+Enter")
        expect(page.locator("li.step.ran .options")).to_have_text("{max_bytes=1024}")
        expect(page.locator("#facts")).to_contain_text("6 → 6 ops")
        page.fill("#text", "cse")
        page.click("#revert")
        expect(names).to_have_text(["dce", "fold-constant"])
        page.locator("li[data-place='0']").drag_to(
            page.locator("li[data-place='1']"), target_position={"x": 40, "y": 35}
        )
        expect(names).to_have_text(["fold-constant", "dce"])


def test_errors_are_shown_and_the_page_lives_on(page: Page):
    with served(adds(), "cse") as client:
        opened(page, client.port)
        page.click("#as-text")
        page.fill("#text", "cse,nosuch")
        page.click("#run")
        expect(page.locator("#message")).to_contain_text("there is no pass 'nosuch'")
        page.fill("#text", 'cse,mlir-opt{executable="/nowhere"}')
        page.click("#run")
        expect(page.locator("li.step.failed")).to_contain_text("mlir-opt")
        expect(page.locator("#message")).to_contain_text("mlir-opt")
        expect(page.locator("#view")).to_contain_text("mlir-opt failed")
        page.fill("#text", "dce")
        page.click("#run")
        expect(page.locator("#message")).to_be_hidden()
        expect(page.locator("#facts")).to_contain_text("6 → 6 ops")


def test_the_graph(page: Page):
    with served(IRModule.parse(BYOC), "dce") as client:
        opened(page, client.port)
        shown(page, "graph")
        expect(page.locator("g.node")).to_have_count(9)
        expect(page.locator(".legend span")).to_have_text(["host", "cutlass", "dnnl", "npu"])
        fill = "node => getComputedStyle(node.querySelector('rect')).fill"
        colours = [
            page.locator(f"g.node:has-text('{n}')").first.evaluate(fill) for n in ("add", "negative", "npu_0", "region")
        ]
        assert len(set(colours)) == 4
        page.click("g.node:has-text('relay.add')")
        expect(page.locator(".detail h3")).to_have_text("relay.add")
        expect(page.locator(".detail")).to_contain_text("%e = relay.add %d, %y")
        expect(page.locator("#node-source")).to_have_text("<text>:6:3")
        page.keyboard.press("ArrowUp")
        expect(page.locator(".detail h3")).to_have_text("byoc.compiler_end")
        page.keyboard.press("Escape")
        expect(page.locator(".detail")).to_be_hidden()
        before = page.locator(".stage svg > g").get_attribute("transform")
        page.click("text=Fit")
        assert page.locator(".stage svg > g").get_attribute("transform") != before
        page.click("g.node:has-text('@npu_0')")
        page.click("button:has-text('Open @npu_0')")
        settled(page)
        expect(page.locator("g.node")).to_have_count(3)


def test_from_the_graph_to_the_text_and_back(page: Page, tmp_path: Path):
    out = tmp_path / "report.html"
    out.write_text(report(record(IRModule.parse(BUFFERS), "dce")))
    page.goto(f"file://{out}")
    shown(page, "graph")
    page.click("g.node:has-text('@second')")
    page.click("text=Show in IR")
    expect(page.locator(".row.here")).to_contain_text("func.call @second(")
    page.click("text=Show in graph")
    expect(page.locator(".detail h3")).to_have_text("@second")


def test_find_and_where_a_value_is_used(page: Page):
    with served(adds(), "cse") as client:
        opened(page, client.port)
        shown(page, "text")
        page.keyboard.press("/")
        page.keyboard.type("relay.add")
        expect(page.locator(".row.hit.now")).to_contain_text("%c = relay.add")
        page.click(".row:has-text('relay.add') .v:has-text('%a')")
        expect(page.locator(".v.same")).to_have_count(3)


def test_a_report_shows_the_same_and_edits_nothing(page: Page, tmp_path: Path):
    out = tmp_path / "report.html"
    out.write_text(report(record(adds(), "cse", name="adds")))
    page.goto(f"file://{out}")
    expect(page.locator("#facts")).to_contain_text("6 → 5 ops")
    expect(page.locator(".row.removed")).to_have_count(2)
    expect(page.locator("#run")).to_be_hidden()
    assert page.locator("#add").count() == 0 and page.locator("[draggable=true]").count() == 0


@pytest.mark.parametrize("static", [False, True], ids=["served", "report"])
def test_no_name_of_a_model_is_run(page: Page, tmp_path: Path, static: bool):
    def look() -> None:
        expect(page.locator("#model")).to_have_text(EVIL)
        for tab in TABS:
            shown(page, tab)
        shown(page, "graph")
        page.locator("g.node").nth(1).click()
        expect(page.locator("#node-source")).to_contain_text("window.pwned=1")
        assert page.evaluate("window.pwned") is None
        assert page.locator("img").count() == 0

    if static:
        out = tmp_path / "report.html"
        out.write_text(report(record(evil(), "dce", name=EVIL)))
        page.goto(f"file://{out}")
        return look()
    with served(evil(), "dce", EVIL) as client:
        opened(page, client.port)
        look()
        page.click("#as-text")
        page.fill("#text", EVIL)
        page.click("#run")
        expect(page.locator("#message")).not_to_be_empty()
        assert page.evaluate("window.pwned") is None and page.locator("img").count() == 0


def test_a_server_that_has_ended_is_said(page: Page):
    with served(adds(), "cse") as client:
        opened(page, client.port)
    page.click("#run")
    expect(page.locator("#message")).to_contain_text("relay-explore does not answer")


def test_a_notebook_shows_the_record_in_a_sandboxed_frame(page: Page):
    shown_there = methodcaller("_repr_html_")(record(adds(), "dce"))
    assert "sandbox" in shown_there
    page.set_content(f"<!doctype html><body>{shown_there}</body>")
    frame = page.frame_locator("iframe")
    expect(frame.locator("#view:not([aria-busy])")).to_contain_text("The module as it came")
    frame.locator("[data-tab=graph]").click()
    expect(frame.locator("#view svg").first).to_be_visible()


def test_a_report_on_disk_shows_the_record(page: Page, tmp_path: Path):
    (tmp_path / "report.html").write_text(report(record(adds(), "dce")), encoding="utf-8")
    page.goto((tmp_path / "report.html").as_uri())
    settled(page)
    expect(page.locator("#view")).to_contain_text("The module as it came")


def test_what_nobody_moved_fits_again_when_the_page_gets_narrow(page: Page, tmp_path: Path):
    out = tmp_path / "report.html"
    out.write_text(report(record(IRModule.parse(BYOC), "fold-constant{max_bytes=123456789012345678901234567890},dce")))
    page.goto(f"file://{out}")
    shown(page, "graph")
    inside = """() => {
      const stage = document.querySelector(".stage svg").getBoundingClientRect();
      const nodes = [...document.querySelectorAll("g.node")].map((node) => node.getBoundingClientRect());
      return nodes.every((node) => node.left >= stage.left && node.right <= stage.right);
    }"""
    page.wait_for_function(inside)
    for width in (600, 1280, 600):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(inside)
    style = page.locator(".step .time").first.evaluate("each => getComputedStyle(each).whiteSpace")
    assert style == "nowrap", "a number and its unit stay on one line beside long options"
    page.mouse.move(300, 700)
    page.mouse.wheel(0, 30)
    before = page.locator(".stage svg > g").get_attribute("transform")
    page.set_viewport_size({"width": 600, "height": 800})
    page.wait_for_timeout(100)
    assert page.locator(".stage svg > g").get_attribute("transform") == before


def test_a_profile_fits_a_narrow_page(page: Page, tmp_path: Path):
    pytest.importorskip("rich_click", reason="needs the extra cli")
    model = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
    assert main(["profile", str(model), "--seconds", "0.05", "--html", f"{tmp_path}/p.html"]) == 0
    page.set_viewport_size({"width": 600, "height": 900})
    page.goto(f"file://{tmp_path}/p.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= 600
    box = page.locator("td:last-child").first.bounding_box()
    assert box is not None and box["width"] > 400


CELL = """
import relay
from relay import viewer
mod = relay.IRModule.parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }")
viewer.record(mod, "dce")
"""


@pytest.mark.slow
def test_a_notebook_as_nbconvert_writes_it(page: Page, tmp_path: Path):
    pytest.importorskip("nbconvert", reason="needs nbconvert and ipykernel")
    pytest.importorskip("ipykernel", reason="needs nbconvert and ipykernel")
    cell = {"cell_type": "code", "source": CELL, "execution_count": None, "id": "a"}
    book = json.dumps({"cells": [cell], "nbformat": 4, "nbformat_minor": 5})
    book = book.replace('"id"', '"metadata": {}, "outputs": [], "id"').replace(
        '"nbformat"', '"metadata": {}, "nbformat"'
    )
    (tmp_path / "n.ipynb").write_text(book)
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", "n.ipynb"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    (tmp_path / "n.html").write_text(re.sub(r"<script[^>]*src=.*?</script>", "", (tmp_path / "n.html").read_text()))
    page.goto((tmp_path / "n.html").as_uri())
    frame = page.frame_locator("iframe")
    expect(frame.locator("#view:not([aria-busy])")).to_contain_text("The module as it came")
    frame.locator("[data-tab=graph]").click()
    expect(frame.locator("#view svg").first).to_be_visible()
