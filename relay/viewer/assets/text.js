// The views of the complete IR after a pass, and of the number of ops by kind.

async function textView(view, tools, app) {
  const number = app.shown();
  const found = await app.source.snapshot(number);
  if (!app.current(view)) return;
  const contents = app.source.overview.snapshots[number];
  const code = new Code(contents.parts.filter((part) => !part.loose).map((part) => part.lines));
  code.add(found.lines.map((text, n) => ({ line: n, text, numbers: [n + 1] })));
  const jump = h("select", { "aria-label": "Go to a function" }, ...contents.parts.map((part, n) => h("option", { value: n }, partName(part))));
  jump.addEventListener("change", () => code.go(contents.parts[jump.value].lines[0]));
  const copy = h("button", { type: "button", title: "Copy the whole text" }, "Copy");
  copy.addEventListener("click", async () => { await navigator.clipboard.writeText(found.text); copy.textContent = "Copied"; });
  tools.append(...(contents.parts.length ? [jump] : []), copy, wrapButton(view), ...finder(() => code.rows, (row) => code.reveal(row)));
  const source = h("div", { id: "source", hidden: true });
  const point = (line) => {
    code.go(line);
    const place = found.source_of[line];
    const part = contents.parts.findIndex((p) => p.lines[0] <= line && line < p.lines[1]);
    source.replaceChildren(h("span", {}, `line ${count(line + 1)}`), h("b", {}, place >= 0 ? found.sources[place] : "no source location"));
    if (part >= 0) source.append(h("button", { type: "button", onclick: () => app.openGraph(part, line) }, "Show in graph"));
    show(source, true);
  };
  code.element.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row && !event.target.closest("button") && !String(getSelection())) point(Number(row.dataset.line));
  });
  view.append(code.element, source);
  if (app.line !== null) {
    point(app.line);
    app.line = null;
  }
}

/** The label of a function in a list: name, number of ops, external compiler. */
function partName(part) {
  const name = part.loose ? "(no function)" : `@${part.name}`;
  return `${name} · ${plural(part.ops, "op")}${part.compiler ? ` · ${part.compiler}` : ""}`;
}

function kindsView(view, tools, app) {
  const step = app.step(), { snapshots } = app.source.overview;
  const before = snapshots[step ? step.before : 0].kinds, after = snapshots[app.shown()].kinds;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const rows = names.map((name) => ({ name, old: before[name] || 0, now: after[name] || 0 }));
  rows.sort((a, b) => Math.abs(b.now - b.old) - Math.abs(a.now - a.old) || b.now - a.now || (a.name < b.name ? -1 : 1));
  const most = Math.max(1, ...rows.map((row) => row.now));
  const number = (value, kind = "number") => h(`td.${kind}`, {}, value);
  const bar = (now) => {
    const amount = h("span.amount");
    amount.style.width = `${(now / most) * 220}px`;
    return amount;
  };
  view.append(h("table", {},
    h("thead", {}, h("tr", {}, h("th", {}, "op"), h("th.number", {}, "before"), h("th.number", {}, "after"), h("th.number", {}, "change"), h("th"))),
    h("tbody", {}, ...rows.map(({ name, old, now }) => h("tr", {}, h("td", {}, name), number(count(old)), number(count(now)),
      number(signed(now - old), now > old ? "number.more-of" : "number.less-of"),
      h("td", {}, bar(now)))))));
  tools.append(`${plural(rows.length, "kind")} of op`);
}
