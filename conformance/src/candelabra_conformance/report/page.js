"use strict";
/* The report's page. `data` holds the cases as columns of numbers, each an index into the names of its axis or into
   `texts`; a filter compares numbers, and only the rows that can be seen are in the document. */
const data = JSON.parse(document.getElementById("data").textContent);
const { axes, columns, texts, bad } = data;
const PRINTED = 200; // cases printed in full
const GLYPHS = { passed: "✓", failed: "✗", skipped: "·", blocked: "⊘", unsupported: "–", "expected failure": "≈",
  "unexpected pass": "+", crashed: "‼", "timed out": "∞" };
const byId = (id) => document.getElementById(id);
const nameOf = (axis, at) => axes[axis][columns[axis][at]];
const textOf = (column, at) => texts[columns[column][at]];
const many = (count) => `${count.toLocaleString("en")} ${count === 1 ? "case" : "cases"}`;
const classOf = (verdict) => verdict.replace(" ", "-");

const caseParts = (at) => ["operator", "property", "dtype", "layout"].map((axis) => nameOf(axis, at)).filter(Boolean);
const caseId = (at) => caseParts(at).join("/");
const hashOf = (parts) => "#" + parts.map((part) => encodeURIComponent(part).replace(/%3A/gi, ":")).join("/");
const everyCase = columns.verdict.map((_, at) => at);
const searched = everyCase.map((at) => (caseId(at) + "\n" + textOf("message", at)).toLowerCase());

/* Filters: the number that a column has to have, or null for any. */
const FILTERS = ["property", "verdict", "route", "level", "layout"];

function fillFilters() {
  for (const axis of FILTERS) {
    const select = byId(axis);
    select.append(make("option", { value: "" }, "any"));
    if (axis === "verdict") select.append(make("option", { value: "bad" }, "red: any failure"));
    axes[axis].forEach((name, at) => select.append(make("option", { value: at }, String(name === "" ? "none" : name))));
  }
}

function filtered() {
  const wanted = FILTERS.map((axis) => [columns[axis], byId(axis).value]).filter(([, value]) => value !== "");
  const text = byId("text").value.trim().toLowerCase();
  const red = new Set(bad.map((name) => axes.verdict.indexOf(name)));
  const fits = (value, asked) => (asked === "bad" ? red.has(value) : value === Number(asked));
  return everyCase.filter(
    (at) => wanted.every(([column, value]) => fits(column[at], value)) && (!text || searched[at].includes(text)));
}

/* The matrix: of each operator a cell per dtype with the worst verdict, the farthest route, the number of cases. */
function matrixOf(cases) {
  const rows = new Map();
  for (const at of cases) {
    const operator = columns.operator[at];
    if (!rows.has(operator)) rows.set(operator, { operator, worst: Infinity, cells: new Map() });
    const row = rows.get(operator), dtype = columns.dtype[at], verdict = columns.verdict[at];
    const cell = row.cells.get(dtype) ?? { worst: Infinity, route: 0, count: 0, red: 0, ulp: null };
    row.worst = Math.min(row.worst, verdict);
    cell.worst = Math.min(cell.worst, verdict);
    cell.route = Math.max(cell.route, columns.route[at]);
    cell.count += 1;
    cell.red += bad.includes(axes.verdict[verdict]);
    cell.ulp = larger(cell.ulp, columns.ulp[at]);
    row.cells.set(dtype, cell);
  }
  const all = [...rows.values()];
  return byId("order").value === "worst" ? all.sort((a, b) => a.worst - b.worst || a.operator - b.operator) : all;
}

function larger(a, b) {
  if (a === null || b === null) return a ?? b;
  if (a === "nan" || b === "nan") return "nan";
  return Number(b === "inf" ? Infinity : b) > Number(a === "inf" ? Infinity : a) ? b : a;
}

let selection = { parts: [] }; // what the address names: {operator, property, dtype, layout}, indices or undefined
let focused = { row: 0, column: 0 }; // column 0 is the operator's name

function drawRow(row, at) {
  const name = axes.operator[row.operator];
  const head = make("th", { scope: "row", role: "rowheader", title: name }, name);
  const cells = axes.dtype.map((dtype, column) => drawCell(row.cells.get(column), dtype, name));
  [head, ...cells].forEach((cell, column) => {
    cell.tabIndex = at === matrix.tabbed(focused.row) && column === focused.column ? 0 : -1;
    cell.classList.toggle("chosen", row.operator === selection.operator && selection.dtype === (column ? column - 1 : undefined));
  });
  return make("tr", { role: "row", "aria-rowindex": at + 2, "data-row": at }, head, ...cells);
}

function drawCell(cell, dtype, operator) {
  if (!cell) return make("td", { role: "gridcell", className: "empty" });
  const verdict = axes.verdict[cell.worst], route = axes.route[cell.route];
  const told = `${operator}, ${dtype || "no dtype"}: ${verdict}, ${many(cell.count)}` + (cell.red ? `, ${cell.red} red` : "")
    + (route ? `, ${route}` : "") + (cell.ulp === null ? "" : `, ${cell.ulp} ULP`);
  const shown = GLYPHS[verdict] + (cell.red ? ` ${cell.red}` : "");
  const mark = route && route !== "native" ? [make("span", { className: "route" }, route[0])] : [];
  return make("td", { role: "gridcell", className: classOf(verdict), title: told, "aria-label": told }, shown, ...mark);
}

function drawCase(at, position) {
  const verdict = nameOf("verdict", at), ulp = columns.ulp[at];
  const rest = [nameOf("route", at), ulp === null ? "" : `${ulp} ULP`].filter(Boolean).join(", ");
  const chosen = at === selection.at, tabbed = position === list.tabbed(list.items.indexOf(selection.at));
  return make("li", { role: "option", className: classOf(verdict), tabIndex: tabbed ? 0 : -1, "aria-selected": String(chosen),
    title: caseId(at), "data-case": at }, `${GLYPHS[verdict]} ${caseId(at)}${rest ? "  " + rest : ""}`);
}

const matrix = new Rows(byId("matrix-scroll"), byId("rows"), drawRow,
  (height) => make("tr", { className: "rest", "aria-hidden": "true", hidden: !height }, sized(make("td"), height)));
const list = new Rows(byId("list-scroll"), byId("cases"), drawCase,
  (height) => sized(make("li", { className: "rest", role: "presentation", hidden: !height }), height));

/* The address: #operator/property/dtype/layout, of which parts may be missing; "-" is no dtype. */
function readAddress() {
  let parts;
  try { parts = location.hash.slice(1).split("/").filter(Boolean).map(decodeURIComponent); }
  catch { parts = [location.hash.slice(1)]; }
  const found = { parts };
  if (parts.length) found.operator = axes.operator.indexOf(parts[0]);
  for (const part of parts.slice(1)) {
    const axis = ["property", "dtype", "layout"].find((each) => axes[each].includes(part === "-" ? "" : part) &&
      found[each] === undefined && (part !== "-" || each === "dtype"));
    if (axis) found[axis] = axes[axis].indexOf(part === "-" ? "" : part);
    else found.operator = -1;
  }
  const id = parts.join("/");
  found.at = everyCase.find((at) => columns.operator[at] === found.operator && caseId(at) === id);
  return found;
}

function isSelected(at) {
  const chosen = selection.at;
  const wanted = chosen === undefined ? selection : { operator: selection.operator, dtype: columns.dtype[chosen] };
  return ["operator", "property", "dtype", "layout"].every(
    (axis) => wanted[axis] === undefined || columns[axis][at] === wanted[axis]);
}

/* Redraws everything that depends on filters and address; a few ms for 50,000 cases. */
function redraw() {
  selection = readAddress();
  const cases = filtered();
  const listed = cases.filter(isSelected).sort((a, b) => columns.verdict[a] - columns.verdict[b] || a - b);
  matrix.set(matrixOf(cases));
  byId("matrix").setAttribute("aria-rowcount", matrix.items.length + 1);
  list.set(listed);
  byId("shown").textContent = `${cases.length.toLocaleString("en")} of ${many(everyCase.length)}`;
  const parts = selection.at === undefined ? selection.parts : [nameOf("operator", selection.at), nameOf("dtype", selection.at)];
  const title = parts.filter(Boolean).join("/") || "all cases";
  byId("selection").textContent = `${title}: ${many(listed.length)}`;
  const only = listed.length === 1 ? listed[0] : undefined;
  byId("detail").replaceChildren(...detailOf(selection.at ?? only));
}

/* After the address has changed: what it names comes into view. */
function follow() {
  redraw();
  const row = matrix.items.findIndex((each) => each.operator === selection.operator);
  if (row >= 0) matrix.reveal(row);
  list.scroller.scrollTop = 0;
  list.reveal(Math.max(0, list.items.indexOf(selection.at)));
}

function detailOf(at) {
  if (at === undefined) return [];
  const ulp = columns.ulp[at], program = textOf("reproducer", at), message = textOf("message", at);
  const facts = { verdict: nameOf("verdict", at), level: nameOf("level", at), route: nameOf("route", at),
    "largest error": ulp === null ? "" : `${ulp} ULP`, "blocked by": textOf("blocked_by", at),
    "without a kernel": textOf("missing", at), "operators used": textOf("uses", at) };
  const told = make("dl");
  for (const [name, value] of Object.entries(facts)) {
    if (value !== "") told.append(make("dt", {}, name), make("dd", {}, String(value)));
  }
  const parts = [make("h3", {}, make("a", { href: hashOf(caseParts(at)) }, caseId(at))), told];
  if (message) parts.push(make("pre", { className: "message" }, message));
  if (program) {
    const button = make("button", { type: "button", className: "copy" }, "copy the reproducer");
    button.addEventListener("click", () => copy(program, button));
    parts.push(button, make("pre", { className: "program" }, program));
  }
  return parts;
}

async function copy(text, button) {
  try { await navigator.clipboard.writeText(text); }
  catch { // no permission, or an older browser for file:// addresses
    const area = make("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "copied";
}

function choose(row, column) {
  const { operator, cells } = matrix.items[row];
  focused = { row, column };
  if (column && !cells.has(column - 1)) return;
  const dtype = axes.dtype[column - 1] || "-";
  location.hash = hashOf(column ? [axes.operator[operator], dtype] : [axes.operator[operator]]);
}

/* Keys: arrows, Home, End, Page Up and Page Down move; Enter or Space opens. */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-12, 0], PageDown: [12, 0],
  Home: [-Infinity, 0], End: [Infinity, 0] };
const within = (value, count) => Math.max(0, Math.min(count - 1, value));

function cellOf(event) {
  const cell = event.target.closest("th, td"), row = cell?.closest("tr[data-row]");
  return row ? [Number(row.dataset.row), cell.cellIndex] : null;
}

byId("rows").addEventListener("click", (event) => cellOf(event) && choose(...cellOf(event)));
byId("rows").addEventListener("keydown", (event) => {
  const at = cellOf(event), move = MOVES[event.key];
  if (!at || (!move && event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  if (!move) return choose(...at);
  focused = { row: within(at[0] + move[0], matrix.items.length), column: within(at[1] + move[1], axes.dtype.length + 1) };
  matrix.reveal(focused.row);
  matrix.show(true);
  matrix.reveal(focused.row).children[focused.column].focus();
});
byId("cases").addEventListener("click", (event) => {
  const row = event.target.closest("[data-case]");
  if (row) location.hash = hashOf(caseParts(Number(row.dataset.case)));
});
byId("cases").addEventListener("keydown", (event) => {
  const row = event.target.closest("[data-case]"), move = MOVES[event.key];
  if (!row || (!move?.[0] && event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  const at = within(list.items.indexOf(Number(row.dataset.case)) + (move?.[0] ?? 0), list.items.length);
  location.hash = hashOf(caseParts(list.items[at])); // to which the focus follows
});

byId("filters").addEventListener("input", redraw);
byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("filters").addEventListener("reset", () => setTimeout(() => { location.hash = ""; redraw(); }));
byId("counts").addEventListener("click", (event) => {
  if (!event.target.dataset.verdict) return;
  byId("verdict").value = axes.verdict.indexOf(event.target.dataset.verdict);
  redraw();
});
window.addEventListener("hashchange", follow);

/* On paper: the whole matrix, and what failed in full. */
window.addEventListener("beforeprint", () => {
  matrix.all = true;
  matrix.show(true);
  const red = filtered().filter((at) => bad.includes(nameOf("verdict", at)));
  const more = red.length > PRINTED ? [make("p", {}, `… and ${red.length - PRINTED} more`)] : [];
  const shown = red.slice(0, PRINTED).map((at) => make("article", {}, ...detailOf(at)));
  byId("printed").replaceChildren(...shown, ...more);
});
window.addEventListener("afterprint", () => {
  matrix.all = false;
  matrix.show(true);
  byId("printed").replaceChildren();
});

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const setTheme = (isDark) => { document.documentElement.dataset.theme = isDark ? "dark" : "light"; };
dark.addEventListener("change", (event) => setTheme(event.matches));
byId("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));

setTheme(dark.matches);
byId("head").append(make("th", { scope: "col" }, "operator"), ...axes.dtype.map((dtype) => make("th", { scope: "col" }, dtype || "any")));
axes.verdict.forEach((verdict) => byId("legend").append(make("span", { className: classOf(verdict) }, `${GLYPHS[verdict]} ${verdict}`)));
byId("legend").append("c composite, f fallback, u unsupported; a number: red cases");
fillFilters();
follow();
