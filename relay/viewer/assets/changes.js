// The view of what a pass changed: a line-by-line diff in which long equal parts are folded.

const CONTEXT = 3;

const WORDS = /[\w.%@$]+|\s+|[^\w.%@$\s]/g;
const MOST_WORDS = 400;

/** The ranges of each of two lines that differ, `[[from, to], ...]` each; none if the lines have little in common. */
function difference(old, now) {
  const a = old.match(WORDS) ?? [], b = now.match(WORDS) ?? [];
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) return [[], []];
  const width = b.length + 1, common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const at = i * width + j;
      common[at] = a[i] === b[j] ? common[at + width + 1] + 1 : Math.max(common[at + width], common[at + 1]);
    }
  }
  if (common[0] * 2.2 < Math.max(a.length, b.length)) return [[], []];
  const marks = [[], []], offsets = [0, 0];
  const skip = (side, word) => {
    const last = marks[side].at(-1), from = offsets[side];
    offsets[side] += word.length;
    if (last && last[1] === from) last[1] = offsets[side];
    else marks[side].push([from, offsets[side]]);
  };
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      offsets[0] += a[i++].length;
      offsets[1] += b[j++].length;
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) skip(0, a[i++]);
    else skip(1, b[j++]);
  }
  return marks;
}

/** The rows of a changed hunk: removed lines, then added ones. */
function changedRows(before, after, [, a, b, c, d]) {
  const removed = [], added = [];
  for (let n = a; n < b; n++) removed.push({ text: before[n], kind: "removed", numbers: [n + 1, ""], sign: "−" });
  for (let n = c; n < d; n++) added.push({ line: n, text: after[n], kind: "added", numbers: ["", n + 1], sign: "+" });
  if (removed.length === added.length) {
    removed.forEach((row, n) => {
      let found;
      const differ = () => (found ??= difference(row.text, added[n].text));
      row.marks = () => differ()[0];
      added[n].marks = () => differ()[1];
    });
  }
  return [...removed, ...added];
}

/** The rows of an equal hunk; lines in which only the numbers of values changed are marked by the sign ≈. */
function equalRows(before, after, a, c, length) {
  return Array.from({ length }, (_, k) => {
    const renamed = before[a + k] !== after[c + k];
    return { line: c + k, text: after[c + k], numbers: [a + k + 1, c + k + 1], sign: renamed ? "≈" : "" };
  });
}

/** The text " in @NAME" for the function that contains a line. */
function functionAt(parts, line) {
  const found = parts.find((part) => !part.loose && part.lines[0] <= line && line < part.lines[1]);
  return found ? ` in @${found.name}` : "";
}

async function changesView(view, tools, app) {
  const step = app.step();
  if (!step) return empty(view, "The module as it came", "Select a pass to see what it changed.");
  if (step.status === "skipped") return empty(view, `${step.name} did not run`, step.why);
  if (step.status === "failed" && step.before === step.after) return empty(view, `${step.name} failed`, step.why);
  if (step.status === "failed") view.append(h("div.failure", {}, `${step.why}\n\nBelow is what the pass changed before it failed.`));
  if (step.before === step.after) return empty(view, `${step.name} changed nothing`, `It took ${time(step.seconds)}.`);
  const [{ hunks }, before, after] = await Promise.all([
    app.source.changes(app.picked - 1), app.source.snapshot(step.before), app.source.snapshot(step.after)]);
  if (!app.current(view)) return;
  const parts = app.source.overview.snapshots[step.after].parts;
  const code = new Code(), folds = [];
  let added = 0, removed = 0, renamed = false, rows = [];
  hunks.forEach((hunk, place) => {
    const [equal, a, b, c, d] = hunk;
    if (!equal) {
      added += d - c;
      removed += b - a;
      rows.push(...changedRows(before.lines, after.lines, hunk));
      return;
    }
    const same = equalRows(before.lines, after.lines, a, c, b - a);
    renamed ||= same.some((row) => row.sign);
    const head = place ? CONTEXT : 0, tail = place < hunks.length - 1 ? CONTEXT : 0;
    if (same.length <= head + tail + 2) {
      rows.push(...same);
      return;
    }
    const middle = same.slice(head, same.length - tail);
    code.add([...rows, ...same.slice(0, head)]);
    rows = same.slice(same.length - tail);
    const fold = h("button.fold", { type: "button" }, `⋯ ${plural(middle.length, "unchanged line")}${functionAt(parts, middle[0].line)}`);
    const open = () => { code.add(middle, fold); fold.remove(); };
    fold.addEventListener("click", open);
    folds.push(open);
    code.element.append(fold);
  });
  code.add(rows);
  const all = h("button", { type: "button", title: "Show the unchanged lines too" }, "Unfold");
  all.addEventListener("click", () => { folds.splice(0).forEach((open) => open()); all.disabled = true; });
  all.disabled = !folds.length;
  const note = renamed ? h("span", { title: "≈ marks lines that differ only in the names of values" }, "≈ renamed") : null;
  tools.append(h("span.plus", {}, `+${count(added)}`), h("span.minus", {}, `−${count(removed)}`), ...(note ? [note] : []),
    all, wrapButton(view), ...finder(() => code.rows, (row) => code.reveal(row)));
  view.append(code.element);
}

/** A button that switches between wrapped and unwrapped long lines. */
function wrapButton(view) {
  const button = h("button", { type: "button", title: "Break long lines (w)", id: "wrap", "aria-pressed": String(wrapButton.on || false) }, "Wrap");
  const apply = () => { view.classList.toggle("wrap", wrapButton.on || false); button.setAttribute("aria-pressed", String(wrapButton.on || false)); };
  button.addEventListener("click", () => { wrapButton.on = !wrapButton.on; apply(); });
  apply();
  return button;
}

/** Show in a view without content the reason why it is empty. */
function empty(view, title, why) {
  view.append(h("div.empty", {}, h("strong", {}, title), why));
}
