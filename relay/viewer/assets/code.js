// IR shown as rows of text with highlighted syntax.

const TOKEN_KINDS = [
  ["s", /"(?:[^"\\]|\\.)*"/],
  ["v", /[%^][\w$.-]+(?:#\d+)?/],
  ["y", /@[\w$.-]+|@"[^"]*"/],
  ["t", /(?:tensor|memref|vector|tuple|complex)<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>|![\w$.-]+|\b(?:index|none|ui\d+|si\d+|i\d+|bf16|f\d+)\b/],
  ["o", /(?<![\w<.])[a-z_]\w*\.[\w$.]+/],
  ["n", /(?<![\w.])-?(?:0x[\dA-Fa-f]+|\d[\d.]*(?:e[+-]?\d+)?)(?![\w])/],
];
const TOKENS = new RegExp(TOKEN_KINDS.map(([, pattern]) => `(${pattern.source})`).join("|"), "g");
const LONGEST = 1200;
const CHUNK = 150;

/** The text as spans with syntax classes. */
function highlighted(text) {
  const pieces = [];
  let end = 0;
  for (const match of text.matchAll(TOKENS)) {
    if (match.index > end) pieces.push(text.slice(end, match.index));
    const kind = TOKEN_KINDS[match.slice(1).findIndex((group) => group !== undefined)][0];
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = match[0];
    pieces.push(span);
    end = match.index + match[0].length;
  }
  pieces.push(text.slice(end));
  return pieces;
}

/** Write a line with marked ranges into a `code` element; of a very long line the start, with a button for the rest. */
function write(code, text, marks = []) {
  const pieces = [], shown = text.slice(0, LONGEST);
  let end = 0;
  for (const [from, to] of marks) {
    if (to > LONGEST) break;
    pieces.push(...highlighted(shown.slice(end, from)), h("mark", {}, ...highlighted(shown.slice(from, to))));
    end = to;
  }
  code.replaceChildren(...pieces, ...highlighted(shown.slice(end)));
  if (text.length > LONGEST) {
    const rest = h("button.more", { type: "button" }, `… ${count(text.length - LONGEST)} more characters`);
    rest.addEventListener("click", () => code.replaceChildren(...highlighted(text)));
    code.append(rest);
  }
}

/** Rows of code, highlighted when they become visible; `scopes` are line ranges in which value names are unique. */
class Code {
  constructor(scopes = []) {
    this.scopes = scopes;
    this.element = h("div.code");
    this.rows = [];
    this.byLine = new Map();
    this.observer = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) this.build(target);
    }, { rootMargin: "900px" });
    this.element.addEventListener("click", (event) => {
      if (event.target.classList.contains("v")) this.mark(event.target.textContent, Number(event.target.closest(".row").dataset.line));
    });
  }

  /** Add rows `{line, text, kind, numbers: [...], sign, marks}`; `line` is the line's number in the text shown. */
  add(rows, before = null) {
    for (let start = 0; start < rows.length; start += CHUNK) {
      const pending = rows.slice(start, start + CHUNK);
      const chunk = h("div.chunk", {}, pending.map((row) => row.text.slice(0, LONGEST)).join("\n"));
      chunk.pending = pending;
      for (const row of pending) {
        row.chunk = chunk;
        if (row.line !== undefined) this.byLine.set(row.line, row);
      }
      this.element.insertBefore(chunk, before);
      this.observer.observe(chunk);
    }
    this.rows.push(...rows);
  }

  build(chunk) {
    this.observer.unobserve(chunk);
    if (!chunk.pending) return;
    const elements = chunk.pending.map((row) => {
      const code = h("code"), sign = row.sign === undefined ? null : h("b", { "data-n": row.sign });
      write(code, row.text, row.marks?.());
      row.element = h("div.row", {}, ...row.numbers.map((n) => h("i", { "data-n": n })), sign, code);
      if (row.kind) row.element.classList.add(row.kind);
      if (row.hit) row.element.classList.add("hit");
      row.element.dataset.line = row.line;
      return row.element;
    });
    chunk.pending = null;
    chunk.replaceChildren(...elements);
    this.showMarked(chunk);
  }

  /** Highlight all uses of a value; if they already are, remove the highlight. */
  mark(name, line) {
    const scope = this.scopes.find(([from, to]) => from <= line && line < to) ?? [0, Infinity];
    const again = this.marked?.name === name && this.marked.scope[0] === scope[0];
    this.marked = again ? null : { name, scope };
    this.showMarked(this.element);
  }

  showMarked(element) {
    if (!this.marked && element !== this.element) return;
    for (const span of element.querySelectorAll(".v")) {
      const line = Number(span.closest(".row").dataset.line);
      const inside = !this.marked || !(line < this.marked.scope[0] || line >= this.marked.scope[1]);
      span.classList.toggle("same", inside && span.textContent === this.marked?.name);
    }
  }

  /** Scroll to a row. */
  reveal(row) {
    this.build(row.chunk);
    row.element.scrollIntoView({ block: "center", inline: "nearest" });
  }

  /** Scroll to a line and mark it as the current one. */
  go(line) {
    for (const old of this.element.querySelectorAll(".here")) old.classList.remove("here");
    const row = this.byLine.get(line);
    if (!row) return;
    this.reveal(row);
    row.element.classList.add("here");
  }
}

/** A search field for the rows: `/` focuses it, Enter goes to the next hit, Shift Enter to the previous one. */
function finder(rows, reveal) {
  let hits = [], place = -1;
  const said = h("span");
  const go = (step) => {
    if (!hits.length) return;
    hits[place]?.element?.classList.remove("now");
    place = (place + step + hits.length) % hits.length;
    reveal(hits[place]);
    hits[place].element?.classList.add("now");
    said.textContent = `${count(place + 1)} of ${count(hits.length)}`;
  };
  const search = (text) => {
    for (const row of hits) {
      row.hit = false;
      row.element?.classList.remove("hit", "now");
    }
    const wanted = text.toLowerCase();
    hits = wanted ? rows().filter((row) => row.text.toLowerCase().includes(wanted)) : [];
    for (const row of hits) {
      row.hit = true;
      row.element?.classList.add("hit");
    }
    place = -1;
    said.textContent = wanted && !hits.length ? "nothing" : "";
    if (hits.length) go(1);
  };
  const field = h("input", { type: "search", id: "find", placeholder: "Find  /", "aria-label": "Find" });
  let waiting;
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => search(field.value), 120);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { field.value = ""; search(""); field.blur(); }
  });
  return [said, field];
}
