// ------------------------------------------------------------ what the reader chose, and the rows that it leaves

const chosen = {
  text: "",
  values: new Map(), // by column, the set of values that are ticked
  ranges: new Map(), // by column, the least and the most as they were typed, in the page's units
  sort: "", // a column, with "-" before it for the largest first
};
// For each row, how many columns' filters it fails; for each of these columns, 1 where it fails that one.
const failures = new Uint8Array(data.rows);
const failing = new Map();
let order = Uint32Array.from({ length: data.rows }, (_, row) => row);
let matches = order;
let sortedBy = "";

function failingValues(name, wanted) {
  const { ordered, groupOf } = grouped(columns.get(name));
  const fails = ordered.map((value) => wanted.has(value) ? 0 : 1);
  return Uint8Array.from(groupOf, (group) => fails[group]);
}

function failingRange(name, [least, most]) {
  const column = columns.get(name);
  const low = least === "" ? -Infinity : Number(least);
  const high = most === "" ? Infinity : Number(most);
  return Uint8Array.from(column.numbers, (number) => {
    if (number === null) return 1;
    const value = scaled(column, number);
    return value >= low && value <= high ? 0 : 1;
  });
}

// Every word has to stand somewhere in the row's texts. A text that many rows share is searched once.
function failingText(text) {
  const fails = new Uint8Array(data.rows);
  for (const word of text.toLowerCase().split(/\s+/).filter(Boolean)) {
    const found = new Uint8Array(data.rows);
    for (const { values, codes } of columns.values()) {
      if (!values) continue;
      const holds = values.map((value) => value.toLowerCase().includes(word));
      if (holds.includes(true)) codes.forEach((code, row) => { if (holds[code]) found[row] = 1; });
    }
    found.forEach((has, row) => { if (!has) fails[row] = 1; });
  }
  return fails;
}

function select() {
  failing.clear();
  if (chosen.text.trim()) failing.set("", failingText(chosen.text));
  for (const [name, wanted] of chosen.values) if (wanted.size) failing.set(name, failingValues(name, wanted));
  for (const [name, ends] of chosen.ranges) if (ends[0] + ends[1]) failing.set(name, failingRange(name, ends));
  failures.fill(0);
  for (const fails of failing.values()) fails.forEach((fail, row) => { failures[row] += fail; });
  sort();
  matches = order.filter((row) => !failures[row]);
}

function sort() {
  if (chosen.sort === sortedBy) return;
  sortedBy = chosen.sort;
  order = Uint32Array.from({ length: data.rows }, (_, row) => row);
  if (!sortedBy) return;
  const keys = sortKeys(columns.get(sortedBy.replace("-", "")));
  const sign = sortedBy.startsWith("-") ? -1 : 1;
  // Rows without a value come last either way.
  order.sort((a, b) => {
    if (keys[a] === keys[b]) return a - b;
    if (Number.isNaN(keys[a])) return Number.isNaN(keys[b]) ? a - b : 1;
    return Number.isNaN(keys[b]) ? -1 : sign * (keys[a] - keys[b]);
  });
}

// Numbers to compare rows by: texts have their place in natural order.
function sortKeys(column) {
  if (column.numbers) return Float64Array.from(column.numbers, (number) => number ?? NaN);
  const places = new Float64Array(column.values.length);
  [...column.values.keys()]
    .sort((a, b) => collator.compare(column.values[a], column.values[b]))
    .forEach((code, place) => { places[code] = place; });
  return Float64Array.from(column.codes, (code) => code < 0 ? NaN : places[code]);
}

// How many rows each value of a column would have, all other filters kept.
function countsOf(name) {
  const { ordered, groupOf } = grouped(columns.get(name));
  const own = failing.get(name);
  const counts = new Uint32Array(ordered.length);
  for (let row = 0; row < data.rows; row += 1) if (failures[row] === (own ? own[row] : 0)) counts[groupOf[row]] += 1;
  return counts;
}

// ------------------------------------------------------------ the choice in the page's address

function addressOf() {
  const told = new URLSearchParams();
  if (chosen.text) told.set("text", chosen.text);
  for (const [name, wanted] of chosen.values) for (const value of wanted) told.append(name, value);
  for (const [name, ends] of chosen.ranges) if (ends[0] + ends[1]) told.set(name, ends.join(".."));
  if (chosen.sort) told.set("sort", chosen.sort);
  return told.toString();
}

function chooseByAddress(address) {
  const told = new URLSearchParams(address.replace(/^#/, ""));
  chosen.text = told.get("text") ?? "";
  chosen.sort = columns.has((told.get("sort") ?? "").replace("-", "")) ? told.get("sort") : "";
  chosen.values.clear();
  chosen.ranges.clear();
  for (const [name, value] of told) {
    const column = columns.get(name);
    if (column?.numbers) chosen.ranges.set(name, rangeOf(value));
    else if (column) chosen.values.set(name, (chosen.values.get(name) ?? new Set()).add(value));
  }
}

function rangeOf(text) {
  const ends = text.split("..");
  return [0, 1].map((end) => Number.isFinite(Number(ends[end] ?? "")) ? (ends[end] ?? "").trim() : "");
}
