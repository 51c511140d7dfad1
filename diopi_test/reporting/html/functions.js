// Functions × element types as a grid, and the page of a function.

VIEWS.functions = {
  title: () => t("functions"),
  tab: () => true,
  show: showFunctions,
};

const KINDS = {
  // by the counts of the cases that count
  "": () => true,
  wrong: (counts) => WRONG.has(worst(counts)),
  not_implemented: (counts) => counts.not_implemented > 0,
  passed: (counts) => worst(counts) === "passed",
};

function showFunctions(parameters) {
  const names = [...BY_FUNCTION.keys()].sort();
  const rows = names.map((name) => gridRow(name));
  const given = { q: "", kind: "", ...parameters };
  const shown = h("p", { class: "shown" });
  const filter = (name) => (value) => {
    given[name] = value;
    remember("functions", given);
    update();
  };
  function update() {
    const words = given.q.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = Object.hasOwn(KINDS, given.kind) ? KINDS[given.kind] : KINDS[""];
    let visible = 0;
    for (const row of rows) {
      const fits = words.every((word) => row.name.toLowerCase().includes(word)) && wanted(row.counts);
      row.element.hidden = !fits;
      visible += fits;
    }
    shown.textContent = t("functions-shown", { shown: number(visible), total: number(rows.length) });
    announce(shown.textContent);
  }
  const form = h(
    "form",
    { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    field("q", t("search"), given.q, filter("q")),
    field("kind", t("with-cases"), given.kind, filter("kind"), [
      ["", t("any")],
      ["wrong", t("wrong")],
      ["not_implemented", verdictName("not_implemented")],
      ["passed", t("all-passed")],
    ]),
  );
  update();
  return [form, shown, grid(rows), h("p", { class: "hint" }, t("grid-hint"))];
}

const TYPES = TABLES.dtype
  .map((_, index) => index)
  .sort((one, other) => rank(TABLES.dtype[one]) - rank(TABLES.dtype[other]));

/** Floating types first, wide ones before narrow ones; what has no type last. */
function rank(dtype) {
  const kind = ["float", "bfloat", "complex", "int", "uint", "bool"].findIndex((begin) => dtype.startsWith(begin));
  return (kind < 0 ? 9 : kind === 1 ? 0 : kind) * 1000 - Number(dtype.match(/\d+$/)?.[0] ?? 0);
}

const GRID_TYPES = TYPES.filter((type) => ALL.some((row) => CASES.dtype[row] === type && isCounted(row)));
const HAS_UNCOUNTED = ALL.some((row) => !isCounted(row));

function gridRow(name) {
  const rows = BY_FUNCTION.get(name);
  const counts = rows.filter(isCounted);
  const groups = grouped(counts, (row) => CASES.dtype[row]);
  const cells = GRID_TYPES.map((type) =>
    groups.has(type) ? gridCell(name, TABLES.dtype[type], counted(groups.get(type))) : h("td", { class: "empty" }),
  );
  const others = rows.filter((row) => !isCounted(row));
  if (HAS_UNCOUNTED) cells.push(uncountedCell(name, others));
  return { name, counts: counted(counts), element: h("tr", {}, h("th", { scope: "row" }, functionLink(name)), cells) };
}

function gridCell(name, dtype, counts) {
  const kind = worst(counts);
  const total = Object.values(counts).reduce((sum, one) => sum + one, 0);
  const text = kind === "passed" || counts[kind] === total ? String(total) : `${counts[kind]}/${total}`;
  const parameters = { function: name, dtype: typeKey(dtype), counts: HAS_UNCOUNTED ? "yes" : "" };
  return gridLink(`verdict-${kind}`, text, `${name} ${dtype}`, counts, parameters, dtype || t("none"));
}

/** Of cases that do not count: how many passed, whatever became of the others. */
function uncountedCell(name, rows) {
  if (!rows.length) return h("td", { class: "empty" });
  const counts = counted(rows);
  const text = `${counts.passed ?? 0}/${rows.length}`;
  const parameters = { function: name, counts: "no" };
  return gridLink("verdict-not_run", text, `${name} ${t("not-counted")}`, counts, parameters, t("not-counted"));
}

function gridLink(kind, text, name, counts, parameters, column) {
  const label = Object.entries(counts)
    .map(([verdict, count]) => `${count} ${verdictName(verdict)}`)
    .join(", ");
  return h(
    "td",
    { class: kind },
    link(text, "cases", parameters, {
      tabindex: "-1",
      "aria-label": `${name}: ${label}`,
      title: label,
      "data-label": column,
    }),
  );
}

/** The table, in which arrow keys go from cell to cell: only one of its links is reached by Tab at a time. */
function grid(rows) {
  const head = GRID_TYPES.map((type) => h("th", { scope: "col" }, said(TABLES.dtype[type] || t("none"))));
  if (HAS_UNCOUNTED) head.push(h("th", { scope: "col" }, t("not-counted")));
  const element = h(
    "table",
    { class: "grid", onkeydown: moveFocus },
    h("caption", {}, t("grid-caption")),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("function")), head)),
    h(
      "tbody",
      {},
      rows.map((row) => row.element),
    ),
  );
  for (const name of element.querySelectorAll("th a")) name.tabIndex = -1;
  element.querySelector("tbody a")?.setAttribute("tabindex", "0");
  return h("div", { class: "scroll tall" }, element);
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function moveFocus(event) {
  const step = STEPS[event.key];
  const cell = event.target.closest("th, td");
  if (!step || !cell) return;
  event.preventDefault();
  const rows = [...cell.closest("tbody").rows].filter((row) => !row.hidden);
  let [row, column] = [rows.indexOf(cell.parentElement), cell.cellIndex];
  let target = null;
  while (!target) {
    row += step[0];
    column += step[1];
    const next = rows[row]?.cells[column];
    if (!next) return;
    target = next.querySelector("a");
  }
  for (const old of cell.closest("table").querySelectorAll('[tabindex="0"]')) old.tabIndex = -1;
  target.tabIndex = 0;
  target.focus();
  target.scrollIntoView({ block: "nearest", inline: "nearest" });
}

VIEWS.function = {
  title: ({ name }) => name ?? "",
  under: "functions",
  show: ({ name, ...parameters }) => {
    const rows = BY_FUNCTION.get(name);
    if (!rows) return h("p", {}, t("no-function"));
    return [
      stack(counted(rows), { function: name }),
      h(
        "div",
        { class: "pair" },
        section(t("element-types"), typeTable(name, rows)),
        section(t("histogram"), histogram(rows)),
      ),
      h(
        "div",
        { class: "pair" },
        section(t("checks"), checkTable(name, rows)),
        section(t("durations"), functionTimes(rows)),
      ),
      functionTimings(rows),
      definition(name),
      section(t("cases"), caseList({ ...parameters, function: name }, ["function"])),
    ];
  },
};

/** What the standard says of a function with failures: arguments, shapes, formula, guarantee. */
function definition(name) {
  const known = DATA.functions[name];
  return (
    known &&
    section(
      t("definition"),
      h("pre", { lang: "en", tabindex: "0" }, known.declaration),
      h("p", { lang: "en", class: "definition" }, known.text),
      facts(known.facts.map(([key, value]) => [t(key), said(value)])),
      DATA.docs
        ? h("p", {}, h("a", { href: `${DATA.docs.replace(/\/?$/, "/")}${known.page}` }, t("definition-link")))
        : h("p", { class: "hint" }, t("definition-page", { page: known.page })),
      definedCases(name),
    )
  );
}

/** All cases of a function with their verdicts, in an element that a click expands. */
function definedCases(name) {
  const rows = BY_FUNCTION.get(name);
  return h(
    "details",
    { class: "function-cases" },
    h("summary", {}, t("definition-cases", { number: number(rows.length) })),
    h(
      "ul",
      { class: "plain" },
      rows.map((row) => h("li", {}, caseLink(row, CASES.label[row]), ` ${verdictName(verdictOf(row))}`)),
    ),
  );
}

function typeTable(name, rows) {
  const groups = [...grouped(rows, dtypeOf)].sort(([one], [other]) => rank(one) - rank(other));
  const verdicts = [...SEVERITY].reverse().filter((verdict) => rows.some((row) => verdictOf(row) === verdict));
  return table(
    t("types-caption"),
    [
      { title: t("element-type"), cell: ([dtype]) => said(dtype || t("none")) },
      ...verdicts.map((verdict) => ({
        title: verdictName(verdict),
        number: true,
        cell: ([dtype, group]) => {
          const found = group.filter((row) => verdictOf(row) === verdict).length;
          return found
            ? link(
                number(found),
                "cases",
                { function: name, dtype: typeKey(dtype), verdict },
                { class: `count text-${verdict}` },
              )
            : "";
        },
      })),
    ],
    groups,
  );
}

function checkTable(name, rows) {
  const found = TABLES.check.map((check) => ({ check, passed: 0, failed: 0 }));
  for (const row of rows) for (const [check, passed] of checksOf(row)) found[check][passed ? "passed" : "failed"] += 1;
  const asked = found.filter((one) => one.passed + one.failed > 0);
  if (!asked.length) return h("p", {}, t("no-checks"));
  return table(
    t("checks-caption"),
    [
      { title: t("check"), cell: (one) => said(one.check) },
      { title: t("verdict-passed"), number: true, cell: (one) => number(one.passed) },
      {
        title: t("verdict-failed"),
        number: true,
        cell: (one) =>
          one.failed
            ? link(number(one.failed), "cases", { function: name, check: one.check }, { class: "count text-failed" })
            : "",
      },
    ],
    asked,
  );
}

/** The calls that move most bytes. */
function functionTimings(rows) {
  const timed = rows.filter(timingOf).sort((one, other) => timingOf(other).bytes - timingOf(one).bytes);
  return timed.length > 0 && section(t("calls"), timingTable(t("calls-caption"), timed.slice(0, 10)));
}

function functionTimes(rows) {
  const total = rows.reduce((sum, row) => sum + secondsOf(row), 0);
  return [
    h("p", {}, t("took", { cases: number(rows.length), seconds: seconds(total) })),
    bars(
      t("slowest-caption"),
      ordered(rows, "seconds")
        .slice(0, 5)
        .map((row) => ({
          name: caseLink(row, CASES.label[row]),
          value: secondsOf(row),
          text: seconds(secondsOf(row)),
        })),
    ),
  ];
}
