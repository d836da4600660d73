// ------------------------------------------------------------ rows: columns of values, each text kept once

const data = JSON.parse(document.getElementById("data").textContent);
const columns = new Map(data.columns.map((column) => [column.name, column]));
const NONE = "–";
const collator = new Intl.Collator("en", { numeric: true });

const one = (id) => document.getElementById(id);
// Formats that are made once: making one takes longer than all else about a cell.
const whole = new Intl.NumberFormat("en-US");
const four = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4, useGrouping: false });
const counted = (number) => whole.format(number);

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// What a row has in a column, as in the row: a text, a number in SI units, or null.
function valueOf(name, row) {
  const column = columns.get(name);
  return column.numbers ? column.numbers[row] : column.values[column.codes[row]] ?? null;
}

const scaled = (column, number) => Number((number * column.factor).toPrecision(6));

function shown(name, row) {
  const value = valueOf(name, row);
  const column = columns.get(name);
  if (value === null) return NONE;
  return column.numbers ? four.format(scaled(column, value)) : value;
}

// Rows by the values that a reader ticks: the names of parts without their options, or texts as they are.
// `groups` are these values in natural order, and `groupOf` has the place of each row's.
function grouped(column) {
  if (column.groupOf) return column;
  const names = column.groups ?? column.values;
  const missing = column.codes.includes(-1);
  column.ordered = [...new Set(names)].sort(collator.compare);
  if (missing) column.ordered.push(NONE);
  const places = new Map(column.ordered.map((name, place) => [name, place]));
  const byCode = names.map((name) => places.get(name));
  column.groupOf = Uint32Array.from(column.codes, (code) => code < 0 ? column.ordered.length - 1 : byCode[code]);
  return column;
}
