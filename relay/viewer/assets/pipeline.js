// The list of passes with the effect of each, which is also the editor of the pipeline.

/** Split a pipeline's text into passes; commas inside braces, brackets and strings are part of a pass. */
function split(text) {
  const found = [];
  let depth = 0, quoted = false, piece = "";
  for (const letter of text) {
    if (letter === '"') quoted = !quoted;
    if (!quoted && "{[(".includes(letter)) depth++;
    if (!quoted && "}])".includes(letter)) depth--;
    if (letter === "," && depth <= 0 && !quoted) { found.push(piece.trim()); piece = ""; } else piece += letter;
  }
  return [...found, piece.trim()].filter(Boolean);
}

const nameOf = (text) => text.split("{")[0];

class PipelineList {
  constructor(app) {
    this.app = app;
    this.list = $("steps");
    this.items = [];
    this.list.classList.toggle("editable", !STATIC);
    this.list.addEventListener("keydown", (event) => this.key(event));
    $("text").addEventListener("input", () => this.set(split($("text").value), false));
    $("as-text").addEventListener("click", () => this.asText($("text").hidden));
    $("revert").addEventListener("click", () => this.load());
    $("default").addEventListener("click", async () => {
      try {
        const { pipeline } = await ask(`default?level=${$("level").value}`);
        this.set(split(pipeline));
      } catch (error) { app.complain(error.message); }
    });
  }

  get text() { return this.items.map((item) => item.text).join(","); }
  get edited() { return this.text !== this.app.source?.overview.pipeline; }

  asText(on) {
    show($("text"), on);
    $("as-text").setAttribute("aria-pressed", String(on));
    if (on) $("text").focus();
  }

  /** Show the pipeline of the current record. */
  load() { this.set(split(this.app.source.overview.pipeline)); }

  /** Show these passes; passes that ran in the current record keep their results. */
  set(texts, write = true) {
    const steps = this.app.source?.overview.steps ?? [];
    const ran = steps.filter((step) => step.place !== null);
    let next = 0;
    this.items = texts.map((text) => {
      const found = ran.findIndex((step, n) => n >= next && step.text === text);
      if (found < 0) return { text, step: null };
      next = found + 1;
      return { text, step: ran[found] };
    });
    if (write) $("text").value = texts.join(",");
    this.render();
  }

  move(from, to) {
    if (to < 0 || to >= this.items.length || from === to) return;
    const texts = this.items.map((item) => item.text);
    texts.splice(to, 0, ...texts.splice(from, 1));
    this.moved = to;
    this.set(texts);
  }

  remove(place) { this.set(this.items.map((item) => item.text).filter((_, n) => n !== place)); }

  insert(place, text, replaced = 0) {
    const texts = this.items.map((item) => item.text);
    texts.splice(place, replaced, ...split(text));
    this.set(texts);
  }

  render() {
    const { app } = this, overview = app.source?.overview;
    const steps = overview?.steps ?? [], rows = [];
    const longest = Math.max(1e-9, ...steps.map((step) => step.seconds));
    if (overview) rows.push(this.row(h("li.step.input", {}), 0, "input", "", `${count(overview.snapshots[0].ops)} ops`, null, longest));
    this.items.forEach((item, place) => {
      const at = item.step ? steps.indexOf(item.step) : -1;
      for (let n = at; n > 0 && steps[n - 1].place === null; n--) rows.splice(rows.length - (at - n), 0, this.stepRow(steps[n - 1], n, null, longest));
      rows.push(at >= 0 ? this.stepRow(item.step, at + 1, place, longest) : this.newRow(item, place));
    });
    if (!this.edited) steps.forEach((step, n) => step.place === null && steps.slice(n).every((later) => later.place === null) && rows.push(this.stepRow(step, n + 1, null, longest)));
    if (!STATIC) rows.push(h("li.step.add", { onclick: () => this.choose(this.items.length) }, h("span"), h("button", { type: "button", id: "add" }, "+ Add a pass")));
    this.list.replaceChildren(...rows);
    show($("edited"), this.edited && Boolean(overview));
    show($("revert"), this.edited && Boolean(overview));
    this.select();
  }

  row(li, number, name, options, note, step, longest) {
    li.dataset.number = number;
    li.append(h("span.grip", { "aria-hidden": "true", title: "Drag to reorder" }, step && step.place !== null && !STATIC ? "⠿" : ""),
      h("div", {}, h("div.name", {}, name), options ? h("div.options", {}, options) : null, typeof note === "string" ? h("div.note", {}, note) : note));
    if (step && step.status !== "skipped") {
      const bar = h("span.bar-of-time");
      bar.style.width = `${Math.max(1, (step.seconds / longest) * 64)}px`;
      li.append(h("div.time", {}, time(step.seconds), bar));
    }
    li.addEventListener("click", (event) => event.target.closest("button, input") || this.app.pick(number));
    return li;
  }

  stepRow(step, number, place, longest) {
    const kinds = [step.place === null ? "required" : "", step.status, this.edited ? "stale" : ""].filter(Boolean);
    const [before, after] = step.ops, change = after - before;
    const note = h("div.note", {}, step.status === "skipped" ? step.why : step.status === "failed" ? "failed"
      : step.before === step.after ? "no change" : `${count(after)} ops`);
    if (step.status === "ran" && change) note.append(h(change > 0 ? "span.up" : "span.down", {}, signed(change)));
    if (step.place === null && step.status === "ran") note.append(h("span", {}, step.why));
    const li = this.row(h(`li.step.${kinds.join(".")}`), number, step.name, step.text.slice(step.name.length), note, step, longest);
    return place === null ? li : this.editable(li, place);
  }

  newRow(item, place) {
    const name = nameOf(item.text);
    const li = this.row(h("li.step.new"), -1 - place, name, item.text.slice(name.length), "", null, 1);
    li.querySelector(".grip").textContent = STATIC ? "" : "⠿";
    return this.editable(li, place);
  }

  /** Make a row editable: its pass can be moved, changed and removed. */
  editable(li, place) {
    if (STATIC) return li;
    li.dataset.place = place;
    li.draggable = true;
    const button = (label, title, onclick) => h("button", { type: "button", title, "aria-label": `${title}: ${this.items[place].text}`, onclick, tabindex: -1 }, label);
    li.append(h("span.edit", {}, button("✎", "Change", () => this.choose(place, true)), button("+", "Insert after", () => this.choose(place + 1)), button("×", "Remove", () => this.remove(place))));
    li.addEventListener("dragstart", (event) => { this.dragged = place; li.classList.add("dragged"); event.dataTransfer.effectAllowed = "move"; event.dataTransfer.setData("text/plain", this.items[place].text); });
    li.addEventListener("dragend", () => { this.dragged = null; this.render(); });
    const below = (event) => event.clientY - li.getBoundingClientRect().y > li.clientHeight / 2;
    li.addEventListener("dragover", (event) => {
      if (this.dragged === null || this.dragged === undefined) return;
      event.preventDefault();
      li.classList.toggle("drop-below", below(event));
      li.classList.toggle("drop-above", !below(event));
    });
    li.addEventListener("dragleave", () => li.classList.remove("drop-above", "drop-below"));
    li.addEventListener("drop", (event) => {
      event.preventDefault();
      const target = place + (below(event) ? 1 : 0);
      this.move(this.dragged, target > this.dragged ? target - 1 : target);
    });
    return li;
  }

  /** Mark the selected step in the list. */
  select() {
    for (const li of this.list.querySelectorAll(".step")) {
      const picked = Number(li.dataset.number) === this.app.picked;
      li.classList.toggle("picked", picked);
      if (picked) { li.setAttribute("aria-current", "step"); li.scrollIntoView({ block: "nearest" }); } else li.removeAttribute("aria-current");
    }
  }

  key(event) {
    if (event.target !== this.list) return;
    const rows = [...this.list.querySelectorAll(".step[data-number]")];
    const at = rows.findIndex((li) => li.classList.contains("picked"));
    const place = rows[at]?.dataset.place === undefined ? -1 : Number(rows[at].dataset.place);
    const down = event.key === "ArrowDown", up = event.key === "ArrowUp";
    if ((down || up) && event.altKey && place >= 0 && !STATIC) {
      this.moved = null;
      this.move(place, place + (down ? 1 : -1));
      if (this.moved !== null) this.app.pick(Number(this.list.querySelector(`[data-place="${this.moved}"]`)?.dataset.number ?? 0));
    } else if (down || up) {
      const next = rows[at + (down ? 1 : -1)];
      if (next) this.app.pick(Number(next.dataset.number));
    } else if ((event.key === "Delete" || event.key === "Backspace") && place >= 0 && !STATIC) this.remove(place);
    else if (event.key === "Insert" && !STATIC) this.choose(place + 1);
    else if (event.key === "F2" && place >= 0 && !STATIC) this.choose(place, true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Show a field with a list of all passes, from which one is inserted at `place`, or replaces the one there. */
  async choose(place, change = false) {
    this.list.querySelector(".chooser")?.remove();
    const field = h("input", { "aria-label": "Pass", role: "combobox", "aria-expanded": "true", "aria-controls": "choices", spellcheck: "false", placeholder: "name of a pass, options in { }" });
    if (change) field.value = this.items[place].text;
    const choices = h("ul", { id: "choices", role: "listbox" });
    const box = h("li.chooser", {}, field, choices);
    const rows = [...this.list.querySelectorAll("[data-place]")];
    const next = rows.find((li) => Number(li.dataset.place) === (change ? place + 1 : place));
    this.list.insertBefore(box, next ?? this.list.querySelector(".add"));
    field.focus();
    const close = () => { box.remove(); this.list.focus(); };
    const take = (text) => { if (text) this.insert(place, text, change ? 1 : 0); close(); };
    let picked = 0, shown = [], passes = [];
    choices.append(h("li", {}, "…"));
    const refresh = () => {
      const wanted = nameOf(field.value).trim().toLowerCase();
      const rank = (pass) => (pass.name.startsWith(wanted) ? 0 : pass.name.includes(wanted) ? 1 : pass.summary.toLowerCase().includes(wanted) ? 2 : 3);
      shown = passes.map((pass) => [rank(pass), pass]).filter(([n]) => n < 3).sort((a, b) => a[0] - b[0]).map(([, pass]) => pass).slice(0, 60);
      picked = Math.min(picked, Math.max(shown.length - 1, 0));
      choices.replaceChildren(...shown.map((pass, n) => h("li", { role: "option", "aria-selected": String(n === picked), onmousedown: (event) => { event.preventDefault(); take(pass.name); } },
        pass.name, h("small", {}, [pass.summary, ...pass.options].filter(Boolean).join(" · ")))));
      choices.children[picked]?.scrollIntoView({ block: "nearest" });
    };
    field.addEventListener("input", () => { picked = 0; refresh(); });
    field.addEventListener("blur", () => setTimeout(() => box.remove(), 100));
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "ArrowDown") picked = Math.min(picked + 1, shown.length - 1);
      else if (event.key === "ArrowUp") picked = Math.max(picked - 1, 0);
      else if (event.key === "Escape") return close();
      else if (event.key === "Enter") return take(/[{,]/.test(field.value) || !shown.length ? field.value : shown[picked].name);
      else return;
      event.preventDefault();
      refresh();
    });
    passes = await this.app.passes();
    refresh();
  }
}
