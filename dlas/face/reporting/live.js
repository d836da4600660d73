// Asks where the page comes from whether there is a later one, and shows that one as this one was left.
(() => {
  "use strict";
  const EVERY_MS = 1000, KEPT = `dlas-live ${location.pathname}`;
  const line = document.getElementById("live");
  const fields = () => [...document.querySelectorAll("form:not([method=dialog]) :is(input, select), select[id]")];
  const folds = () => [...document.querySelectorAll("details")];

  function keep() {
    const state = {
      fields: fields().map((field) => [field.id || field.name, field.value, field.checked ?? false]),
      folds: folds().map((fold) => fold.open),
      across: [...document.querySelectorAll(".scroll")].map((each) => each.scrollLeft),
      down: scrollY,
    };
    try { sessionStorage.setItem(KEPT, JSON.stringify(state)); } catch { /* it starts at its top then */ }
  }

  function restore() {
    let state = null;
    try { state = JSON.parse(sessionStorage.getItem(KEPT)); sessionStorage.removeItem(KEPT); } catch { /* as above */ }
    if (!state) return;
    history.scrollRestoration = "manual";
    const now = new Map(fields().map((field) => [field.id || field.name, field]));
    for (const [name, value, checked] of state.fields) {
      const field = now.get(name);
      if (!field || (field.value === value && (field.checked ?? false) === checked)) continue;
      if (field.tagName === "SELECT" && ![...field.options].some((each) => each.value === value)) continue;
      field.value = value;
      if ("checked" in field) field.checked = checked;
      field.dispatchEvent(new Event("change", { bubbles: true }));
    }
    folds().forEach((fold, at) => { if (at < state.folds.length) fold.open = state.folds[at]; });
    document.querySelectorAll(".scroll").forEach((each, at) => { each.scrollLeft = state.across[at] ?? 0; });
    // Figures are drawn when they come into view, which may move what is below them: once more after that.
    const down = () => scrollTo(0, state.down);
    down();
    requestAnimationFrame(() => requestAnimationFrame(down));
  }

  async function ask() {
    let state;
    try {
      state = await (await fetch("state", { cache: "no-store" })).json();
    } catch {
      line.textContent = "`dlas watch` has ended: this page stays as it is.";
      return;
    }
    line.textContent = state.line;
    // What somebody reads in front of the page stays until it is closed.
    if (String(state.number) === line.dataset.number || document.querySelector("dialog[open]")) return;
    keep();
    location.reload();
  }

  restore();
  ask();
  setInterval(ask, EVERY_MS);
})();
