// ------------------------------------------------------------ the table: a page of rows at a time

const PAGE = 50;
const LONG = 70;
let first = 0;

const cut = (text) => text.length > LONG ? `${text.slice(0, LONG - 1)}…` : text;

// A text that may break before a part's options, and between words of a name.
function broken(made, text) {
  cut(text).split(/(?=\()|(?<=_)/).forEach((piece, place) => made.append(...(place ? [element("wbr")] : []), piece));
  return made;
}

function latency(row) {
  const disturbed = valueOf("noisy_reason", row) === null ? "" : "~";
  const time = `${shown("latency_s", row)}${disturbed}`;
  if (valueOf("latency_low_s", row) === null) return time;
  return `${time} [${shown("latency_low_s", row)}, ${shown("latency_high_s", row)}]`;
}

function cell(name, row) {
  if (name === "status") {
    const made = element("td");
    made.append(element("span", shown(name, row), { class: `pill ${shown(name, row)}` }));
    return made;
  }
  if (name === "latency_s" && valueOf(name, row) === null) return element("td", cut(shown("reason", row)), { class: "why" });
  if (name === "latency_s") return element("td", latency(row), { class: "number" });
  if (columns.get(name).numbers) return element("td", shown(name, row), { class: "number" });
  return broken(element("td"), shown(name, row));
}

function line(row, names) {
  const made = element("tr");
  const button = broken(element("button", "", { type: "button", class: "link", "aria-haspopup": "dialog" }), shown("model", row));
  button.addEventListener("click", () => showDetails(row));
  const head = element("th", "", { scope: "row" });
  head.append(button);
  made.append(head, ...names.slice(1).map((name) => cell(name, row)));
  return made;
}

function showTable() {
  const names = [...document.querySelectorAll("#rows thead th")].map((head) => head.dataset.column);
  first = Math.max(0, Math.min(first, Math.floor((matches.length - 1) / PAGE) * PAGE));
  const page = matches.slice(first, first + PAGE);
  one("rows").tBodies[0].replaceChildren(...Array.from(page, (row) => line(row, names)));
  one("count").textContent = `${counted(matches.length)} of ${counted(data.rows)} rows`;
  one("none").hidden = matches.length > 0;
  one("where").textContent = matches.length ? `${counted(first + 1)} to ${counted(first + page.length)}` : "";
  one("earlier").setAttribute("aria-disabled", String(first === 0));
  one("later").setAttribute("aria-disabled", String(first + PAGE >= matches.length));
  showSorting();
}

function showSorting() {
  const name = chosen.sort.replace("-", "");
  for (const head of document.querySelectorAll("#rows thead th")) {
    if (head.dataset.column !== name) head.removeAttribute("aria-sort");
    else head.setAttribute("aria-sort", chosen.sort === name ? "ascending" : "descending");
  }
}

// The smallest first, then the largest first, then in the order of the folders.
function sortBy(name) {
  const next = { "": name, [name]: `-${name}`, [`-${name}`]: "" };
  chosen.sort = next[chosen.sort] ?? name;
  answer();
}

function turn(pages) {
  const next = first + pages * PAGE;
  if (next < 0 || next >= matches.length) return;
  first = next;
  showTable();
  one("rows").parentElement.scrollTop = 0;
}

function listenToTable() {
  for (const head of document.querySelectorAll("#rows thead th")) {
    head.querySelector("button").addEventListener("click", () => sortBy(head.dataset.column));
  }
  one("earlier").addEventListener("click", () => turn(-1));
  one("later").addEventListener("click", () => turn(1));
}
