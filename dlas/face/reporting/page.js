"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const points = data.points;
  const many = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);

  // ------------------------------------------------------------ points

  // A column of texts is a list of values and, for each point, which of them it has.
  const value = (name, p) => {
    const column = points[name];
    if (!column) return null;
    return Array.isArray(column) ? column[p] : column.values[column.codes[p]] ?? null;
  };
  // A point's name: its values of the axes that vary; a runtime has kernels of its own, whatever the algorithm.
  const called = (p, without = "") => data.axes
    .filter((axis) => axis !== without && !(axis === "algorithm" && value(axis, p) === "library" && data.axes.includes("compiler")))
    .map((axis) => data.worded.includes(axis) ? `${axis} ${value(axis, p)}` : value(axis, p)).join(" · ") || value("model", p);
  const digits = (number, count = 4) => Number(number.toPrecision(count)).toLocaleString("en-US", { maximumSignificantDigits: count });
  const latency = (p) => `${digits(points.ms[p])} ms [${digits(points.low[p])}, ${digits(points.high[p])}]`;
  const scaled = (unit) => (number) => {
    const steps = ["", "k", "M", "G", "T"];
    let step = 0;
    while (Math.abs(number) >= 999.5 && step < steps.length - 1) { number /= 1000; step += 1; }
    return `${digits(number, 3)} ${steps[step]}${unit}`;
  };
  const percent = (number) => `${(100 * number).toFixed(2)} %`;
  const FACTS = [
    ["first run", "first_run", (ms) => `${digits(ms)} ms`], ["samples", "samples", String], ["runs", "runs", String],
    ["accuracy", "accuracy", percent], ["error", "error", (e) => `${e.toExponential(1)} of the largest output`],
    ["weights removed", "ratio", percent], ["parameters", "parameters", scaled("")], ["nonzeros", "nonzeros", scaled("")],
    ["multiply-adds", "macs", scaled("")], ["effective multiply-adds", "effective", scaled("")],
    ["size", "size", scaled("B")], ["size as packed", "packed", scaled("B")], ["size as CSR", "csr", scaled("B")],
    ["peak memory", "memory", scaled("B")], ["coverage", "coverage", percent], ["tuner's trials", "trials", String],
    ["load", "load", (x) => x.toFixed(2)], ["noisy", "noisy_reason", String],
    ["started", "started", String],
  ];

  function element(tag, text = "", classes = "") {
    const made = document.createElement(tag);
    if (text !== "") made.textContent = text;
    if (classes) made.className = classes;
    return made;
  }

  function facts(pairs) {
    const list = element("dl");
    for (const [name, text] of pairs) list.append(element("dt", name), element("dd", text));
    return list;
  }

  function show(p) {
    const status = value("status", p);
    const body = one("point-body");
    one("point-title").textContent = called(p);
    const step = value("step", p);
    const head = element("p");
    head.append(element("span", status, `pill ${status}`));
    if (step) head.append(` in step ${step}`);
    if (points.ms[p] !== null) head.append(` ${latency(p)}`);
    body.replaceChildren(head);
    const reason = value("reason", p);
    if (reason) body.append(element("pre", reason));
    const axes = data.named.map((axis) => [axis, data.full[axis]?.[value(axis, p)] ?? value(axis, p)]).filter(([, text]) => text !== null);
    const quantities = FACTS.filter(([, name]) => value(name, p) !== null).map(([name, column, worded]) => [name, worded(value(column, p))]);
    body.append(facts([...axes, ...quantities]));
    if (layers.has(p)) body.append(slowest(p));
    body.append(element("p", "Everything else about it:", "hint"), element("pre", `dlas show ${value("folder", p)} ${value("id", p)}`));
    if (!one("point").open) one("point").showModal();
    body.parentElement.scrollTop = 0;
  }

  function slowest(p) {
    const own = layers.get(p).slice().sort((a, b) => b.us - a.us);
    const shown = own.slice(0, 8).map((layer) => [layer.name, `${digits(layer.us)} µs, ${layer.algorithm}`]);
    const list = element("div");
    list.append(element("h3", own.length > 8 ? `The slowest 8 of ${own.length} layers` : "Layers"), facts(shown));
    return list;
  }

  // ------------------------------------------------------------ filters

  const form = one("filters");
  const total = points.ms.length;
  const chosen = {};
  let selected = new Uint8Array(total).fill(1);

  function choose(axis, wanted) {
    const field = form && form.elements.namedItem(axis);
    if (!field) return;
    field.value = field.value === wanted ? "" : wanted;
    filter();
  }

  function filter() {
    for (const key of Object.keys(chosen)) delete chosen[key];
    for (const field of many("select", form)) {
      field.classList.toggle("on", field.value !== "");
      if (field.value !== "") chosen[field.name] = field.value;
    }
    selected = new Uint8Array(total).fill(1);
    for (const [axis, wanted] of Object.entries(chosen)) {
      const column = points[axis];
      const code = column.values.indexOf(wanted);
      for (let p = 0; p < total; p += 1) if (column.codes[p] !== code) selected[p] = 0;
    }
    const left = selected.reduce((sum, on) => sum + on, 0);
    one("count").textContent = left === total ? `${total.toLocaleString("en-US")} points` : `${left.toLocaleString("en-US")} of ${total.toLocaleString("en-US")} points`;
    for (const button of many("[data-axis]")) button.setAttribute("aria-pressed", String(chosen[button.dataset.axis] === button.dataset.value));
    form.querySelector(".hint").hidden = left === total;
    filterMatrix();
    filterTables();
    for (const figure of figures) figure.update();
    fillChooser();
  }

  function filterMatrix() {
    const columns = new Set();
    for (const line of many(".matrix tbody tr:not(.setting)")) {
      let any = false;
      for (const button of many("button", line)) {
        const on = selected[button.dataset.p] === 1;
        button.hidden = !on;
        if (on) { any = true; columns.add(button.parentElement.cellIndex); }
      }
      line.hidden = !any;
    }
    for (const body of many(".matrix tbody")) body.hidden = !many("tr:not(.setting)", body).some((line) => !line.hidden);
    for (const row of many(".matrix tr:not(.setting)")) {
      if (row.parentElement.tagName === "THEAD" && row.rowIndex === 0) continue;
      for (const cell of row.cells) if (cell.cellIndex > 0) cell.hidden = !columns.has(cell.cellIndex);
    }
    // The headers above span as many columns as are left of theirs.
    const top = document.querySelector(".matrix thead tr");
    if (!top) return;
    let at = 1;
    for (const head of [...top.cells].slice(1)) {
      head.dataset.span ??= head.colSpan;
      const width = Number(head.dataset.span);
      let left = 0;
      for (let column = at; column < at + width; column += 1) left += columns.has(column) ? 1 : 0;
      head.hidden = left === 0;
      head.colSpan = Math.max(left, 1);
      at += width;
    }
  }

  function filterTables() {
    for (const line of many("tr[data-where]")) {
      const where = JSON.parse(line.dataset.where);
      line.hidden = Object.entries(chosen).some(([axis, wanted]) => axis in where && where[axis] !== wanted);
    }
  }

  // ------------------------------------------------------------ figures

  const MOST_PANELS = 6;
  const AXIS = 45; // pixels of an axis with its title
  const ERRORS = 1; // what Vega calls vega.Error
  const figures = [];
  const tip = one("tip");

  function tooltip(handler, event, item, datum) {
    if (!datum || typeof datum !== "object" || !("t" in datum || typeof datum.p === "number")) { tip.hidden = true; return; }
    const p = datum.p;
    tip.replaceChildren();
    if (typeof p === "number") {
      tip.append(element("b", called(p, "machine")));
      tip.append(element("div", points.ms[p] === null ? value("status", p) : latency(p)));
    }
    if (datum.t) tip.append(element("div", datum.t));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
  }

  // Rows travel as columns.
  function unpacked(columns) {
    const names = Object.keys(columns);
    const count = names.length ? columns[names[0]].length : 0;
    return Array.from({ length: count }, (_, at) => Object.fromEntries(names.map((name) => [name, columns[name][at]])));
  }

  class Panel {
    constructor(figure, place, content) {
      this.figure = figure;
      this.place = place;
      this.plot = place.querySelector(".plot");
      this.spec = figure.content.specs[content.variant];
      this.rows = unpacked(content.rows);
      this.view = null;
      this.seen = this.busy = this.stale = false;
      this.reserve();
    }
    // Reserve the height, so that the page does not jump when the figure is drawn.
    reserve() {
      this.plot.style.minHeight = `${this.height + AXIS}px`;
    }
    // As `height` in charts.py: a category has room for its marks and for its label.
    get height() {
      const height = this.spec.height;
      if (typeof height === "number") return height;
      const rows = this.visible;
      const different = (name) => [...new Set(rows.map((row) => row[name]))];
      const labels = different("y");
      const across = height.for === "offset" ? different(rows.some((row) => row.k !== undefined) ? "k" : "c").length * data.gap : 1;
      const text = data.text * (labels.some((label) => String(label).length > data.long) ? 2 : 1) + 2;
      return Math.max(text, height.step * across) * labels.length;
    }
    get visible() {
      return this.figure.content.filtered ? this.rows.filter((row) => typeof row.p !== "number" || selected[row.p] === 1) : this.rows;
    }
    get worth() {
      return this.visible.some((row) => row.x !== null && row.x !== undefined);
    }
    // A request while it is being drawn draws it once more, with the selection of that time.
    async draw() {
      this.seen = this.stale = true;
      if (this.busy) return;
      this.busy = true;
      while (this.stale) {
        this.stale = false;
        await this.embed();
      }
      this.busy = false;
    }
    async embed() {
      this.reserve();
      if (this.view) { this.view.finalize(); this.view = null; }
      const spec = { ...this.spec, width: "container", height: this.height, data: { name: "rows", values: this.visible } };
      const narrow = this.plot.clientWidth < 520;
      // The title of a narrow plot may be longer than its axis: it ends where the axis does, and begins under the labels.
      const axisX = { ...data.theme.axisX, ...(this.plot.clientWidth < 400 ? { titleAnchor: "end" } : {}) };
      const config = { ...data.theme, axisX, axisY: { ...data.theme.axisY, labelLimit: narrow ? 150 : 230 }, legend: { disable: true }, mark: { tooltip: { content: "data" } } };
      try {
        const made = await vegaEmbed(this.plot, spec, { actions: false, renderer: "svg", config, tooltip, logLevel: ERRORS });
        this.view = made.view;
        this.view.addEventListener("click", (event, item) => {
          if (item && item.datum && typeof item.datum.p === "number") show(item.datum.p);
        });
      } catch (error) {
        this.plot.textContent = `This figure cannot be drawn: ${error.message}`;
      }
    }
  }

  class FigureView {
    constructor(place) {
      this.content = data.figures[place.dataset.figure];
      this.place = place;
      this.more = place.querySelector(".more");
      this.most = MOST_PANELS;
      this.panels = many(".panel", place).map((panel, at) => new Panel(this, panel, this.content.panels[at]));
      this.more.addEventListener("click", () => { this.most = Infinity; this.update(false); });
    }
    update(redraw = true) {
      let shown = 0;
      let worthy = 0;
      for (const panel of this.panels) {
        const worth = panel.worth;
        worthy += worth ? 1 : 0;
        const on = worth && shown < this.most;
        shown += on ? 1 : 0;
        const back = panel.place.hidden;
        panel.place.hidden = !on;
        if (on && (redraw || back) && panel.seen && this.content.filtered) panel.draw();
      }
      this.more.hidden = shown === worthy;
      this.more.textContent = `Show all ${worthy} panels`;
      let none = this.place.querySelector(".none");
      if (!worthy && !none) this.place.append(element("p", "No point of this figure passes the filters.", "none"));
      if (worthy && none) none.remove();
    }
  }

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting || !entry.target.panel || entry.target.panel.seen) continue;
      entry.target.panel.draw();
    }
  }, { rootMargin: "300px" });

  // ------------------------------------------------------------ layers

  const layers = new Map((data.layers ?? []).map((timed) => [
    timed.p, timed.names.map((name, at) => ({ name: data.texts[name], algorithm: data.texts[timed.algorithms[at]], us: timed.us[at] })),
  ]));
  const MOST_OPTIONS = 500;

  function fillChooser() {
    const first = one("layers-first");
    if (!first) return;
    const names = [...layers.keys()].filter((p) => selected[p] === 1).slice(0, MOST_OPTIONS);
    for (const [field, empty] of [[first, false], [one("layers-second"), true]]) {
      const before = field.value || String((empty ? data.chosen.second : data.chosen.first) ?? "");
      field.replaceChildren(...(empty ? [new Option("nothing", "")] : []), ...names.map((p) => new Option(label(p), p)));
      if ([...field.options].some((option) => option.value === before)) field.value = before;
    }
  }

  const label = (p) => `${called(p)}: ${digits(points.ms[p] ?? NaN)} ms`;

  function drawLayers() {
    const figure = figures.find((found) => found.place.dataset.figure === "layers");
    const panel = figure.panels[0];
    const rows = [];
    const times = new Map();
    const legend = many("#figure-layers .legend span");
    const sums = [];
    for (const [at, field] of [one("layers-first"), one("layers-second")].entries()) {
      // A mark's colour follows from the label that the place had initially; the legend tells what is there now.
      const which = data.chosen.labels[at];
      if (legend[at]) legend[at].lastChild.textContent = field.value === "" ? "nothing" : called(Number(field.value));
      if (field.value === "") continue;
      sums.push(data.layers.find((timed) => timed.p === Number(field.value)).sums);
      for (const layer of layers.get(Number(field.value)) ?? []) {
        times.set(layer.name, Math.max(times.get(layer.name) ?? 0, layer.us));
        rows.push({ y: layer.name, c: which, x: layer.us, t: `${layer.name}, ${layer.algorithm}: ${digits(layer.us)} µs` });
      }
    }
    const drawn = new Set([...times.keys()].sort((a, b) => times.get(b) - times.get(a)).slice(0, data.most_bars));
    panel.rows = rows.filter((row) => drawn.has(row.y));
    panel.place.querySelector("h4").textContent = sums.join("; ");
    panel.draw();
  }

  // ------------------------------------------------------------ theme and contents

  const THEMES = [["auto", "◐ auto", "as the system"], ["light", "☀ light", "light"], ["dark", "☾ dark", "dark"]];

  function useTheme(name) {
    const [, text, description] = THEMES.find(([theme]) => theme === name) ?? THEMES[0];
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    one("theme").textContent = text;
    one("theme").setAttribute("aria-label", `colours: ${description}`);
  }

  function nextTheme() {
    const now = document.documentElement.dataset.theme ?? "auto";
    const next = THEMES[(THEMES.findIndex(([name]) => name === now) + 1) % THEMES.length][0];
    useTheme(next);
    try { localStorage.setItem("dlas-theme", next); } catch { /* private windows and files may have no storage */ }
  }

  function markContents() {
    const links = new Map(many("nav a").map((link) => [link.getAttribute("href").slice(1), link]));
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
    }, { rootMargin: "-10% 0px -60% 0px" });
    for (const section of many("main > section")) if (links.has(section.id)) seen.observe(section);
  }

  // ------------------------------------------------------------ start

  let stored = "auto";
  try { stored = localStorage.getItem("dlas-theme") ?? "auto"; } catch { /* as above */ }
  useTheme(stored);
  one("theme").addEventListener("click", nextTheme);
  if (innerWidth <= 960) one("contents").open = false;
  else if (form) form.querySelector("details").open = true;
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-p], [data-axis]");
    if (button?.dataset.p !== undefined) show(Number(button.dataset.p));
    else if (button) choose(button.dataset.axis, button.dataset.value);
  });
  one("point").addEventListener("click", (event) => { if (event.target === one("point")) one("point").close(); });
  document.addEventListener("pointermove", (event) => { if (!event.target.closest(".plot")) tip.hidden = true; });
  for (const place of many("[data-figure]")) figures.push(new FigureView(place));
  for (const figure of figures) {
    figure.update();
    for (const panel of figure.panels) { panel.plot.panel = panel; watcher.observe(panel.plot); }
  }
  if (form) {
    form.addEventListener("change", filter);
    form.addEventListener("reset", () => setTimeout(filter));
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  } else fillChooser();
  for (const id of ["layers-first", "layers-second"]) one(id)?.addEventListener("change", drawLayers);
  let width = innerWidth;
  addEventListener("resize", () => {
    if ((width < 520) === (innerWidth < 520)) return;
    width = innerWidth;
    for (const figure of figures) for (const panel of figure.panels) if (panel.seen && !panel.place.hidden) panel.draw();
  });
  // Paper has no second look: what was not scrolled to is drawn for it.
  addEventListener("beforeprint", () => {
    for (const figure of figures) for (const panel of figure.panels) if (!panel.seen && !panel.place.hidden) panel.draw();
  });
  markContents();
})();
