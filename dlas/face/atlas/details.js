// ------------------------------------------------------------ everything about one row, and rows as CSV

const FORMULA = /^[=+\-@\t\r]/;

function showDetails(row) {
  const list = element("dl");
  for (const { name } of data.columns) {
    if (valueOf(name, row) === null || name === "reason") continue;
    list.append(element("dt", titleOf(name)), element("dd", shown(name, row)));
  }
  const reason = valueOf("reason", row);
  one("row-title").textContent = ["model", "compression", "algorithm", "compiler"].map((name) => shown(name, row)).join(" · ");
  one("row-body").replaceChildren(
    ...(reason === null ? [] : [element("pre", reason)]),
    list,
    element("p", "Everything else about it:", { class: "hint" }),
    element("pre", `dlas show ${valueOf("folder", row)} ${valueOf("id", row)}`),
  );
  one("row").showModal();
  one("row").scrollTop = 0;
}

// Columns have their names and units as in rows. Spreadsheets take a text that begins like a formula for one.
function csv() {
  const quoted = (text) => /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const told = ({ numbers }, value) => value === null ? "" : numbers ? String(value) : quoted(FORMULA.test(value) ? `'${value}` : value);
  const lines = [data.columns.map(({ name }) => name).join(",")];
  for (const row of matches) lines.push(data.columns.map((column) => told(column, valueOf(column.name, row))).join(","));
  return `${lines.join("\n")}\n`;
}

let saved = "";
function listenToDetails() {
  one("row").addEventListener("click", (event) => { if (event.target === one("row")) one("row").close(); });
  one("csv").addEventListener("click", () => {
    URL.revokeObjectURL(saved);
    saved = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    one("csv").href = saved;
  });
}
