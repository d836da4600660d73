// ------------------------------------------------------------ the form: boxes to tick, ranges, and what is chosen

const MOST_BOXES = 200;
const FEW_BOXES = 12;
const groups = new Map(); // of boxes that were opened, by column
const titleOf = (name) => {
  const { title, unit } = columns.get(name);
  return unit ? `${title} (${unit})` : title;
};

class Boxes {
  constructor(details) {
    this.name = details.dataset.column;
    this.list = element("ul", "", { class: "boxes" });
    this.boxes = new Map();
    const many = grouped(columns.get(this.name)).ordered.length > FEW_BOXES;
    if (many) {
      this.search = element("input", "", { type: "search", "aria-label": `values of ${titleOf(this.name)} with`, placeholder: "only values with …" });
      this.search.addEventListener("input", () => this.fill());
      details.append(this.search);
    }
    this.more = element("p", "", { class: "hint" });
    details.append(this.list, this.more);
    this.fill();
  }

  // The boxes of the values that have the searched text, not too many; those without any row left are hidden.
  fill() {
    const wanted = this.search?.value.toLowerCase() ?? "";
    const found = columns.get(this.name).ordered.filter((value) => value.toLowerCase().includes(wanted));
    this.boxes.clear();
    this.list.replaceChildren(...found.slice(0, MOST_BOXES).map((value) => this.box(value)));
    this.left = found.length - MOST_BOXES;
    this.update();
  }

  box(value) {
    const input = element("input", "", { type: "checkbox" });
    const count = element("span", "", { class: "count" });
    input.addEventListener("change", () => tick(this.name, value, input.checked));
    const label = element("label");
    label.append(input, element("span", value, { class: "value" }), count);
    const item = element("li");
    item.append(label);
    this.boxes.set(value, { input, count, item });
    return item;
  }

  update() {
    const counts = countsOf(this.name);
    columns.get(this.name).ordered.forEach((value, place) => {
      const box = this.boxes.get(value);
      if (!box) return;
      box.input.checked = chosen.values.get(this.name)?.has(value) ?? false;
      box.count.textContent = counted(counts[place]);
      box.item.hidden = counts[place] === 0 && !box.input.checked;
    });
    const empty = [...this.boxes.values()].every(({ item }) => item.hidden);
    this.more.textContent = this.left > 0 ? `${counted(this.left)} more values: type a part of one`
      : empty ? "no such value in the rows that match" : "";
  }
}

function tick(name, value, on) {
  const wanted = chosen.values.get(name) ?? new Set();
  if (on) wanted.add(value);
  else wanted.delete(value);
  chosen.values.set(name, wanted);
  answer();
}

// What is chosen, in words, each with what takes it back.
function choices() {
  const found = [];
  if (chosen.text.trim()) found.push([`text: ${chosen.text}`, () => { chosen.text = ""; }]);
  for (const [name, wanted] of chosen.values) {
    for (const value of wanted) found.push([`${titleOf(name)}: ${value}`, () => wanted.delete(value)]);
  }
  for (const [name, [least, most]] of chosen.ranges) {
    if (least + most) found.push([`${titleOf(name)}: ${least || "any"} to ${most || "any"}`, () => chosen.ranges.delete(name)]);
  }
  return found;
}

function showChoices() {
  one("chosen").replaceChildren(...choices().map(([words, takeBack], place) => {
    const button = element("button", `${words} ✕`, { type: "button", "aria-label": `remove the filter ${words}` });
    button.addEventListener("click", () => {
      takeBack();
      answer();
      // The button is gone: the next one, or the search, is where a keyboard goes on.
      (one("chosen").querySelectorAll("button")[place] ?? one("text")).focus();
    });
    const item = element("li");
    item.append(button);
    return item;
  }));
}

// What the form's fields say, from what is chosen, unless the reader is typing in them.
function showForm() {
  if (document.activeElement !== one("text")) one("text").value = chosen.text;
  for (const details of document.querySelectorAll("details[data-column]")) {
    const name = details.dataset.column;
    const count = chosen.values.get(name)?.size || (chosen.ranges.get(name)?.join("") ? 1 : 0);
    details.querySelector(".in-use").textContent = count ? `${count} chosen` : "";
    details.querySelectorAll("input[data-end]").forEach((input) => {
      if (document.activeElement !== input) input.value = chosen.ranges.get(name)?.[input.dataset.end] ?? "";
    });
  }
  for (const boxes of groups.values()) boxes.update();
}

function listenToForm() {
  for (const details of document.querySelectorAll("details[data-column]")) {
    const name = details.dataset.column;
    const isRange = Boolean(columns.get(name).numbers);
    details.addEventListener("toggle", () => {
      if (details.open && !isRange && !groups.has(name)) groups.set(name, new Boxes(details));
    });
    details.querySelectorAll("input[data-end]").forEach((input, _, inputs) => input.addEventListener("input", () => {
      chosen.ranges.set(name, [...inputs].map((each) => each.value));
      answer();
    }));
  }
  one("text").addEventListener("input", () => { chosen.text = one("text").value; answer(); });
  one("filters").addEventListener("submit", (event) => event.preventDefault());
  one("clear").addEventListener("click", () => { chooseByAddress(`sort=${chosen.sort}`); answer(); });
}
