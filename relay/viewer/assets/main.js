// The application: the current step and view, runs of the pipeline, and keyboard shortcuts.

const VIEWS = { changes: changesView, text: textView, graph: graphView, kinds: kindsView };

class App {
  constructor() {
    this.source = null;
    this.picked = 0;
    this.tab = "changes";
    this.line = null;
    this.partName = null;
    this.pipeline = new PipelineList(this);
  }

  /** The selected step of the record; null if the input is selected. */
  step = () => (this.picked > 0 ? this.source.overview.steps[this.picked - 1] : null);
  /** The index of the snapshot after the selected step. */
  shown = () => this.step()?.after ?? 0;
  /** Whether a view under construction is still the current one. */
  current = (view) => view === this.view;

  /** The index of the function whose graph is shown: the same as before if it exists, else main, else the first. */
  part({ parts }) {
    const same = parts.findIndex((part) => part.name === this.partName);
    return same >= 0 ? same : Math.max(0, parts.findIndex((part) => part.name === "main"));
  }

  pick(number) {
    if (number < 0 || !this.source) return;
    this.picked = number;
    this.pipeline.select();
    this.refresh();
  }

  open(tab) {
    this.tab = tab;
    this.refresh();
  }

  openText(line) {
    this.line = line;
    this.open("text");
  }

  openGraph(part, line = null) {
    this.partName = this.source.overview.snapshots[this.shown()].parts[part].name;
    this.line = line;
    this.open("graph");
  }

  /** Show the selected step in the view of the current tab. */
  async refresh() {
    const old = $("view"), tools = h("div", { id: "tools" });
    this.view = h("section", { id: "view", role: "tabpanel", tabindex: -1, "aria-busy": "true" });
    old.replaceWith(this.view);
    $("tools").replaceWith(tools);
    for (const tab of document.querySelectorAll("[role=tab]")) {
      tab.setAttribute("aria-selected", String(tab.dataset.tab === this.tab));
      tab.tabIndex = tab.dataset.tab === this.tab ? 0 : -1;
    }
    if (!this.source) return empty(this.view, "The pipeline runs", "What each pass does is shown when it has ended.");
    if (self.origin !== "null" || location.protocol === "file:") { // a notebook's sandboxed frame has no address
      history.replaceState(null, "", `${location.pathname}${location.search}#${this.picked}/${this.tab}`);
    }
    const view = this.view;
    try {
      await VIEWS[this.tab](view, tools, this);
    } catch (error) {
      if (this.current(view)) empty(view, "This cannot be shown", error.message);
    }
    view.removeAttribute("aria-busy");
  }

  /** Show a new record; the selected step stays if the record has it. */
  load(source) {
    const overview = source.overview, { steps } = overview;
    if (this.source) {
      const before = this.step();
      const same = before ? steps.findIndex((step) => step.place === before.place && step.name === before.name) + 1 : 0;
      this.picked = before && !same ? Math.min(this.picked, steps.length) : same;
    } else {
      const [number, tab] = location.hash.slice(1).split("/");
      const wanted = /^\d+$/.test(number) && Number(number) <= steps.length;
      this.picked = wanted ? Number(number) : steps.findIndex((step) => step.before !== step.after) + 1;
      if (tab in VIEWS) this.tab = tab;
    }
    this.source = source;
    $("model").textContent = overview.name;
    $("level").value = overview.level ?? "";
    $("verify").checked = overview.verify;
    const fact = (value, what) => h("span", {}, h("b", {}, value), ` ${what}`);
    const first = overview.snapshots[0].ops, last = overview.snapshots.at(-1).ops;
    $("facts").replaceChildren(fact(`${count(first)} → ${count(last)}`, "ops"), fact(time(overview.seconds), "in passes"), fact(overview.target, "target"));
    const failed = steps.findIndex((step) => step.status === "failed");
    if (failed >= 0) this.picked = failed + 1;
    this.complain(overview.error);
    this.pipeline.load();
    this.refresh();
  }

  complain(text) {
    $("message").textContent = text;
    show($("message"), Boolean(text));
  }

  /** All passes that can be inserted, relay's own first. */
  passes() {
    this.known ??= ask("passes").then(({ passes }) => passes, () => { this.known = null; return []; });
    return this.known;
  }

  async run() {
    if (this.running || STATIC) return;
    const level = $("level").value;
    try {
      await ask("run", { pipeline: this.pipeline.text, level: level === "" ? null : Number(level), verify: $("verify").checked });
    } catch (error) {
      return this.complain(error.message);
    }
    this.complain("");
    this.watch();
  }

  /** Poll the state of the run until it ends, then show its record. */
  async watch() {
    this.running = true;
    $("run").disabled = true;
    try {
      for (;;) {
        const state = await ask("state");
        show($("progress"), state.running);
        $("doing").textContent = `${state.doing || "starting"} · ${state.done} of ${state.passes} · ${time(state.seconds)}`;
        $("model").textContent = state.name;
        if (!state.running) {
          this.load(await served(state.run));
          this.passes();
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    } catch (error) {
      this.complain(error.message);
    }
    show($("progress"), false);
    this.running = false;
    $("run").disabled = false;
  }
}

function keys(app) {
  const said = [["↑ ↓", "pass"], ["1–4", "view"], ["/", "find"], ["w", "wrap"]];
  if (!STATIC) said.push(["Alt ↑ ↓", "move"], ["Ins", "insert"], ["F2", "change"], ["Del", "remove"]);
  $("keys").replaceChildren(...said.map(([key, what]) => h("span", {}, h("kbd", {}, key), ` ${what}`)));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      return app.run();
    }
    if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const tab = [...document.querySelectorAll("[role=tab]")][Number(event.key) - 1];
    if (tab) app.open(tab.dataset.tab);
    else if (event.key === "/") $("find")?.focus();
    else if (event.key === "w") $("wrap")?.click();
    else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && event.target === document.body) {
      $("steps").focus();
      $("steps").dispatchEvent(new KeyboardEvent("keydown", { key: event.key }));
    } else return;
    event.preventDefault();
  });
  $("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const tabs = [...document.querySelectorAll("[role=tab]")];
    const next = tabs[(tabs.findIndex((tab) => tab.dataset.tab === app.tab) + step + tabs.length) % tabs.length];
    app.open(next.dataset.tab);
    next.focus();
  });
}

const app = new App();
for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => app.open(tab.dataset.tab));
$("run").addEventListener("click", () => app.run());
$("stop").addEventListener("click", () => ask("stop", {}).catch((error) => app.complain(error.message)));
keys(app);
app.pipeline.render();
app.refresh();
if (STATIC) embedded().then((source) => app.load(source), (error) => app.complain(`The report cannot be read: ${error.message}`));
else app.watch();
