// The view of a function's graph, laid out by the server. It can be moved and scaled by pointer and keyboard.

const HEIGHT = 40;

/** An SVG path through the points of an edge: straight within a rank, curved between ranks. */
function curve(points) {
  let path = `M${points[0][0]} ${points[0][1]}`;
  for (let n = 1; n < points.length; n++) {
    const [x0, y0] = points[n - 1], [x1, y1] = points[n];
    const middle = (y0 + y1) / 2;
    path += x0 === x1 ? `V${y1}` : `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
  }
  return path;
}

/** The CSS class with the colour of a compiler's nodes; "" for the host. */
const placeClass = (place, compilers) => (place ? `.place-${compilers.indexOf(place) % 6}` : "");

/** An SVG element whose content is moved by dragging and scrolling, and scaled by pinching, Ctrl + wheel, or `zoom`. */
class Stage {
  constructor(label) {
    this.content = s("g");
    this.svg = s("svg", { tabindex: 0, role: "group", "aria-label": label }, this.content);
    this.x = this.y = 0;
    this.scale = 1;
    this.touched = false; // whether the user moved it; else it is fitted again when the page's size changes
    this.pointers = new Map();
    this.svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.svg.addEventListener("pointerdown", (event) => this.down(event));
    this.svg.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) this.svg.addEventListener(end, (event) => this.up(event));
  }

  apply() {
    this.content.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
  }

  zoom(factor, x = this.svg.clientWidth / 2, y = this.svg.clientHeight / 2) {
    this.touched = true;
    const scale = Math.min(3, Math.max(0.02, this.scale * factor));
    this.x = x - (x - this.x) * (scale / this.scale);
    this.y = y - (y - this.y) * (scale / this.scale);
    this.scale = scale;
    this.apply();
  }

  wheel(event) {
    event.preventDefault();
    this.touched = true;
    const box = this.svg.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) {
      this.zoom(Math.exp(-event.deltaY * 0.0035), event.clientX - box.x, event.clientY - box.y);
    } else {
      const unit = event.deltaMode ? 30 : 1;
      this.x -= (event.shiftKey ? event.deltaY : event.deltaX) * unit;
      this.y -= (event.shiftKey ? 0 : event.deltaY) * unit;
      this.apply();
    }
  }

  down(event) {
    this.pointers.set(event.pointerId, event);
    this.moved = 0;
  }

  move(event) {
    const last = this.pointers.get(event.pointerId);
    if (!last) return;
    this.moved += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
    if (this.moved > 4 && !this.svg.hasPointerCapture(event.pointerId)) {
      this.touched = true;
      this.svg.setPointerCapture(event.pointerId);
      this.svg.classList.add("panning");
    }
    const other = [...this.pointers.values()].find((p) => p.pointerId !== event.pointerId);
    if (other) {
      const box = this.svg.getBoundingClientRect();
      const apart = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY) || 1;
      this.zoom(apart(event) / apart(last), (event.clientX + other.clientX) / 2 - box.x, (event.clientY + other.clientY) / 2 - box.y);
    } else {
      this.x += event.clientX - last.clientX;
      this.y += event.clientY - last.clientY;
      this.apply();
    }
    this.pointers.set(event.pointerId, event);
  }

  up(event) {
    this.pointers.delete(event.pointerId);
    this.svg.classList.remove("panning");
  }

  /** Show the graph's top at a readable scale, with the first box centred; with `all`, the complete graph. */
  fit([width, height], [left, , across], all = false) {
    const wide = this.svg.clientWidth, high = this.svg.clientHeight;
    const whole = Math.min((wide - 40) / width, (high - 40) / height, 1.2);
    this.scale = all ? whole : Math.max(Math.min((wide - 40) / width, 1), 0.65);
    const fits = width * this.scale <= wide - 40;
    this.x = fits ? (wide - width * this.scale) / 2 : wide / 2 - (left + across / 2) * this.scale;
    this.y = Math.max(20, (high - height * this.scale) / 2);
    this.apply();
  }

  /** Move the content so that a box is visible, unless it is. */
  reveal([left, top, width]) {
    const x = this.x + left * this.scale, y = this.y + top * this.scale;
    const inside = x > 0 && y > 0 && x + width * this.scale < this.svg.clientWidth && y + HEIGHT * this.scale < this.svg.clientHeight;
    if (inside) return;
    this.x += this.svg.clientWidth / 2 - (x + (width * this.scale) / 2);
    this.y += this.svg.clientHeight / 2 - y;
    this.apply();
  }
}

/** The numbers of the lines that the current step added or changed. */
async function addedLines(app) {
  const step = app.step(), added = new Set();
  if (!step || step.before === step.after || app.shown() !== step.after) return added;
  const { hunks } = await app.source.changes(app.picked - 1);
  for (const [equal, , , c, d] of hunks) if (!equal) for (let line = c; line < d; line++) added.add(line);
  return added;
}

const share = (part) => `${(100 * part).toFixed(1)} %`;

function drawNode(node, compilers, fresh) {
  const [left, top, width] = node.box, [name, note] = node.shown;
  const dot = node.kind === "op" ? name.lastIndexOf(".", name.indexOf(" ") > 0 ? name.indexOf(" ") : name.length) : -1;
  const where = node.place ? `, runs on ${node.place}` : "";
  return s(`g.node.${node.kind}${placeClass(node.place, compilers)}`,
    { transform: `translate(${left} ${top})`, tabindex: -1, role: "button", "aria-label": `${node.name}, ${node.note}${where}` },
    s("rect", { width, height: HEIGHT, rx: node.kind === "op" || node.kind === "call" ? 7 : 20 }),
    node.heat == null ? null : s("rect.heat", { width, height: HEIGHT, rx: 7, "fill-opacity": Math.sqrt(node.heat) * 0.7 }),
    node.heat == null ? null : s("text.share", { x: width - 4, y: HEIGHT + 10 }, share(node.heat)),
    s("text", { x: width / 2, y: note ? 17 : 24 }, ...(dot > 0 ? [s("tspan.dialect", {}, name.slice(0, dot + 1)), name.slice(dot + 1)] : [name])),
    note ? s("text.types", { x: width / 2, y: 31 }, note) : null,
    fresh ? s("circle.fresh", { cx: width, cy: 0, r: 4.5 }) : null);
}

async function graphView(view, tools, app) {
  const number = app.shown(), contents = app.source.overview.snapshots[number];
  if (!contents.parts.length) return empty(view, "Nothing to draw", "The module is empty.");
  const part = app.part(contents);
  const [graph, text, added] = await Promise.all([app.source.graph(number, part), app.source.snapshot(number), addedLines(app)]);
  if (!app.current(view)) return;
  const jump = h("select", { "aria-label": "Function" }, ...contents.parts.map((p, n) => h("option", { value: n, selected: n === part }, partName(p))));
  jump.addEventListener("change", () => app.openGraph(Number(jump.value)));
  tools.append(jump);
  if (graph.large) return empty(view, "Too large to draw", `The function has ${count(graph.large)} nodes.`);
  if (!graph.nodes.length) return empty(view, "Nothing to draw", "The function has no ops but constants.");
  const { compilers } = app.source.overview;
  const stage = new Stage(`Graph of ${partName(contents.parts[part])}`);
  const fresh = graph.nodes.map((node) => node.kind !== "argument" && node.kind !== "output" && added.has(node.lines[0]));
  const drawn = graph.nodes.map((node, n) => drawNode(node, compilers, fresh[n] && !fresh.every(Boolean)));
  const edges = graph.edges.map(([, , label, points]) => s("path.edge", { d: curve(points) }, s("title", {}, label)));
  const arrows = graph.edges.map(([, , , points]) => {
    const [x, y] = points[points.length - 1];
    return s("path.arrow", { d: `M${x} ${y}l-3.5 -7h7z` });
  });
  stage.content.append(...edges, ...arrows, ...drawn);
  const detail = h("aside.detail", { hidden: true, "aria-label": "Selected op" });
  const box = h("div.stage", {}, stage.svg, detail);

  let whole = false, wide = 0;
  const fit = (all) => {
    [whole, stage.touched] = [all, false];
    stage.fit(graph.size, graph.nodes[0].box, all);
  };
  new ResizeObserver(() => {
    const before = wide;
    wide = box.clientWidth;
    if (!stage.touched) return fit(whole);
    stage.x += (wide - (before || wide)) / 2;
    stage.apply();
  }).observe(box);

  let picked = -1;
  const pick = (n) => {
    drawn[picked]?.classList.remove("picked");
    picked = n;
    drawn.forEach((node, k) => node.setAttribute("tabindex", k === n ? 0 : -1));
    graph.edges.forEach(([from, to], k) => edges[k].classList.toggle("picked", from === n || to === n));
    const before = stage.svg.clientWidth;
    show(detail, n >= 0);
    stage.x += (stage.svg.clientWidth - before) / 2;
    stage.apply();
    if (n < 0) return;
    stage.touched = true;
    drawn[n].classList.add("picked");
    detail.replaceChildren(...details(graph.nodes[n], text, contents, app));
    drawn[n].focus({ preventScroll: true });
    stage.reveal(graph.nodes[n].box);
  };
  drawn.forEach((node, n) => node.addEventListener("click", () => stage.moved > 4 || pick(n)));
  stage.svg.addEventListener("click", (event) => event.target === stage.svg && stage.moved <= 4 && pick(-1));
  stage.svg.addEventListener("dblclick", () => picked >= 0 && openCallee(graph.nodes[picked], contents, app));
  const neighbours = {
    ArrowDown: () => graph.edges.find(([from]) => from === picked)?.[1] ?? picked,
    ArrowUp: () => graph.edges.find(([, to]) => to === picked)?.[0] ?? picked,
    ArrowRight: () => beside(graph.nodes, picked, 1),
    ArrowLeft: () => beside(graph.nodes, picked, -1),
  };
  stage.svg.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in neighbours) pick(picked < 0 ? 0 : neighbours[event.key]());
    else if (event.key === "Enter" && picked >= 0) openCallee(graph.nodes[picked], contents, app);
    else if (event.key === "Escape") pick(-1);
    else if (event.key === "+" || event.key === "=") stage.zoom(1.25);
    else if (event.key === "-") stage.zoom(0.8);
    else if (event.key === "0") fit(true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const button = (label, title, onclick) => h("button", { type: "button", title, onclick }, label);
  const legend = h("span.legend", {}, h("span", {}, "host"), ...compilers.map((name) => h(`span${placeClass(name, compilers)}`, {}, name)));
  if (fresh.some(Boolean) && !fresh.every(Boolean)) legend.append(h("span.fresh", { title: "Made or changed by this pass" }, "changed"));
  tools.prepend(legend);
  tools.append(button("−", "Smaller (−)", () => stage.zoom(0.8)), button("+", "Larger (+)", () => stage.zoom(1.25)), button("Fit", "All of it (0)", () => fit(true)),
    ...finder(() => graph.nodes.map((node, n) => ({ n, text: `${node.name} ${node.note} ${text.sources[text.source_of[node.lines[0]]] ?? ""}`, element: drawn[n] })),
      (row) => { pick(row.n); $("find").focus(); }));
  view.append(box);
  fit();
  if (app.line !== null) {
    const found = graph.nodes.findIndex((node) => node.kind !== "argument" && node.lines[0] <= app.line && app.line < node.lines[1]);
    app.line = null;
    if (found >= 0) pick(found);
  }
}

/** The node `step` places to the right in the same rank (negative: left); `n` itself if there is none. */
function beside(nodes, n, step) {
  const row = nodes.map((node, k) => k).filter((k) => nodes[k].box[1] === nodes[n].box[1]);
  row.sort((a, b) => nodes[a].box[0] - nodes[b].box[0]);
  return row[row.indexOf(n) + step] ?? n;
}

function openCallee(node, contents, app) {
  const part = node.kind === "call" ? contents.parts.findIndex((p) => `@${p.name}` === node.name) : -1;
  if (part >= 0) app.openGraph(part);
}

/** The panel of a node: its source location, where it runs, its text, and the constants that it uses. */
function details(node, text, contents, app) {
  const place = text.source_of[node.lines[0]];
  const rows = (from, to) => {
    const shown = Math.min(to, from + 60);
    const indent = text.lines[from].search(/\S/);
    const code = h("div.code", {}, ...text.lines.slice(from, shown).map((line) => {
      const element = h("code");
      write(element, line.slice(indent));
      return h("div.row", {}, element);
    }));
    if (shown < to) code.append(h("div.row", {}, `… ${plural(to - shown, "more line")}`));
    return code;
  };
  const buttons = h("div.buttons", {}, h("button", { type: "button", onclick: () => app.openText(node.lines[0]) }, "Show in IR"));
  if (node.kind === "call" && contents.parts.some((p) => `@${p.name}` === node.name)) {
    buttons.append(h("button", { type: "button", onclick: () => openCallee(node, contents, app) }, `Open ${node.name}`));
  }
  const found = [
    h("h3", {}, node.name),
    h("dl", {},
      h("dt", {}, "source"), h("dd", { id: "node-source" }, place >= 0 ? text.sources[place] : "no source location"),
      h("dt", {}, "runs on"), h("dd", {}, node.place || "host"),
      ...(node.heat == null ? [] : [h("dt", {}, "time"), h("dd", {}, `${share(node.heat)} of a run's kernels`)]),
      ...(node.note ? [h("dt", {}, node.lines[1] - node.lines[0] > 1 ? "holds" : "type"), h("dd", {}, node.note)] : [])),
    buttons,
    node.kind === "argument" ? rows(node.lines[0], node.lines[0] + 1) : rows(...node.lines),
  ];
  if (node.details.length) {
    const code = h("div.code", {}, ...node.details.slice(0, 40).map((line) => {
      const element = h("code");
      write(element, text.lines[line].trim());
      return h("div.row", {}, element);
    }));
    found.push(h("h4", {}, `Constants and buffers that it uses (${count(node.details.length)})`), code);
  }
  return found;
}
