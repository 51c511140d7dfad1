// The list of cases with its filters, and the page of a case.

const PAGE = 100; // rows that are shown at a time

VIEWS.cases = {
  title: () => t("cases"),
  tab: () => true,
  show: (parameters) => caseList(parameters),
};

/** The cases that match, with filters but for those that are fixed. */
function caseList(parameters, fixed = []) {
  const given = {
    q: "",
    verdict: "",
    counts: "",
    severity: "",
    cause: "",
    class: "",
    dtype: "",
    check: "",
    function: "",
    order: "id",
    ...parameters,
  };
  const list = h("div", {});
  const shown = h("p", { class: "shown" });
  let rows = [];
  let end = PAGE;
  function update() {
    rows = ordered(matching(given), given.order);
    shown.textContent = t("cases-shown", { shown: number(rows.length), total: number(COUNT) });
    announce(shown.textContent);
    fill();
  }
  function fill() {
    const more = h(
      "button",
      {
        type: "button",
        onclick: () => {
          const first = end;
          end += PAGE;
          fill();
          list.querySelectorAll("tbody tr")[first]?.querySelector("a").focus();
        },
      },
      t("more", { number: number(Math.min(PAGE, rows.length - end)) }),
    );
    list.replaceChildren(caseTable(rows.slice(0, end)), rows.length > end ? more : "");
  }
  const changed = (name) => (value) => {
    given[name] = value;
    end = PAGE;
    if (!fixed.length) remember("cases", { ...given, order: given.order === "id" ? "" : given.order });
    update();
  };
  update();
  return [filters(given, changed, fixed), shown, list];
}

function filters(given, changed, fixed) {
  const any = ["", t("any")];
  const names = (values) => [any, ...values.filter(Boolean).map((value) => [value, value])];
  const present = SEVERITY.filter((verdict) => TABLES.verdict.includes(verdict));
  return h(
    "form",
    { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    field("q", t("search"), given.q, changed("q")),
    field("verdict", t("verdict"), given.verdict, changed("verdict"), [
      any,
      ["wrong", t("wrong")],
      ...present.map((verdict) => [verdict, verdictName(verdict)]),
    ]),
    field("counts", t("counts"), given.counts, changed("counts"), [
      any,
      ["yes", t("yes")],
      ["no", t("no")],
      ...(MINOR.size > 0 ? [["minor", t("too-minor")]] : []),
    ]),
    CAUSES.length > 0 && [
      field("severity", t("severity"), given.severity, changed("severity"), [
        any,
        ...["critical", "major", "minor"].map((name) => [name, t(`severity-${name}`)]),
      ]),
      field("cause", t("cause"), given.cause, changed("cause"), [
        any,
        ...CAUSES.map((cause) => [cause.id, `${cause.number}. ${sentenceOf(cause)}`]),
      ]),
    ],
    !fixed.includes("function") &&
      field("function", t("function"), given.function, changed("function"), names([...BY_FUNCTION.keys()].sort())),
    field("dtype", t("element-type"), given.dtype, changed("dtype"), [
      any,
      ...TYPES.map((type) => TABLES.dtype[type]).map((dtype) => [typeKey(dtype), dtype || t("none")]),
    ]),
    field("class", t("class"), given.class, changed("class"), [
      any,
      ...TABLES.class.map((name) => [name, t(`class-${name}`)]),
    ]),
    field("check", t("failed-check"), given.check, changed("check"), names(TABLES.check)),
    field(
      "order",
      t("order"),
      given.order,
      changed("order"),
      Object.keys(ORDERS).map((name) => [name, t(`order-${name}`)]),
    ),
  );
}

function caseTable(rows) {
  if (!rows.length) return h("p", {}, t("no-cases"));
  return table(
    t("cases"),
    [
      { title: t("case"), cell: (row) => caseLink(row) },
      { title: t("verdict"), cell: (row) => badge(verdictOf(row)) },
      { title: t("class"), cell: (row) => t(`class-${classOf(row)}`) },
      { title: t("ratio"), number: true, cell: (row) => (ratioOf(row) == null ? "" : factor(ratioOf(row))) },
      { title: t("time"), number: true, cell: (row) => seconds(secondsOf(row)) },
      { title: t("message"), cell: (row) => message(messageOf(row)) },
    ],
    rows,
    { class: "wide cases clamped cards" },
  );
}

VIEWS.case = {
  title: ({ id }) => id ?? "",
  under: "cases",
  show: ({ id }) => (BY_ID.has(id) ? casePage(BY_ID.get(id)) : h("p", {}, t("no-case"))),
};

function casePage(row) {
  const details = DATA.details[row];
  const [waived] = DATA.waived[row] ?? [];
  const timing = timingOf(row);
  return [
    h("p", { class: "line" }, badge(verdictOf(row)), " ", functionLink(functionOf(row)), " ", neighbors(row)),
    messageOf(row) && h("p", { class: "message" }, message(details?.message ?? messageOf(row))),
    details?.stack && section(t("stack"), h("pre", { lang: "en", tabindex: "0" }, details.stack.join("\n"))),
    facts([
      [t("element-type"), said(dtypeOf(row))],
      [t("class"), [t(`class-${classOf(row)}`), !isCounted(row) && ` ${t("does-not-count")}`]],
      [t("severity"), severityOf(row) && t(`severity-${severityOf(row)}`)],
      [t("cause"), causeOf(row) && causeLink(CAUSES.find((cause) => cause.id === causeOf(row)))],
      [t("ended"), waived && verdictName(waived)],
      [t("made-of"), DATA.bases[row] && said(DATA.bases[row])],
      [t("ratio"), ratioOf(row) != null && factor(ratioOf(row))],
      [t("time"), seconds(secondsOf(row))],
      [t("call-takes"), timing && t("median", { seconds: seconds(timing.time), repeats: timing.repeats })],
      [t("times-copy"), timing?.times && factor(timing.times)],
      [t("bytes"), timing && `${number(timing.bytes)} (${rate(timing.bytes / timing.time)} GB/s)`],
      [
        t("operations"),
        timing?.operations && `${number(timing.operations)} (${rate(timing.operations / timing.time)} G/s)`,
      ],
    ]),
    section(t("again"), command(commandOf(row))),
    places(details?.findings ?? []),
    (isWrong(row) || waived) && !details && h("p", { class: "hint" }, t("left-out")),
    section(t("checks"), findings(row, details?.findings ?? [])),
    definition(functionOf(row)),
  ];
}

function causeLink(cause) {
  return link(unbroken(`${cause.number}. ${sentenceOf(cause)}`), "cases", { cause: cause.id });
}

/** Links to the cases before and after it that ended alike. */
function neighbors(row) {
  const alike = ALL.filter((other) => verdictOf(other) === verdictOf(row));
  const place = alike.indexOf(row);
  const values = { verdict: verdictName(verdictOf(row)) };
  return h(
    "span",
    { class: "neighbors" },
    place > 0 && link(t("previous", values), "case", { id: idOf(alike[place - 1]) }),
    " ",
    place < alike.length - 1 && link(t("next", values), "case", { id: idOf(alike[place + 1]) }),
  );
}

function findings(row, failed) {
  const messages = new Map(failed.map((finding) => [finding.check, finding.message]));
  const checks = checksOf(row);
  if (!checks.length) return h("p", {}, t("no-checks"));
  return table(
    t("case-checks-caption"),
    [
      { title: t("check"), cell: ([check]) => said(TABLES.check[check]) },
      { title: t("found"), cell: ([, passed]) => badge(passed ? "passed" : "failed") },
      { title: t("message"), cell: ([check]) => message(messages.get(TABLES.check[check]) ?? "") },
    ],
    checks,
    { class: "wide" },
  );
}

/** Where results are wrong; of several checks that found one tensor wrong, the first speaks. */
function places(failed) {
  const seen = new Map();
  for (const finding of failed)
    for (const place of finding.where ?? []) {
      const key = `${place.tensor} ${place.call ?? ""}`;
      if (!seen.has(key)) seen.set(key, place);
    }
  return [...seen.values()].map(placeSection);
}

function rounded(value) {
  if (typeof value !== "number") return value; // what is not finite is text
  return value && Math.abs(value) < 1e-3 ? value.toExponential(2) : value.toPrecision(3);
}

function placeSection(place) {
  const element = `${place.tensor}[${place.index.join(", ")}]`;
  const ratio = place.error != null && place.budget ? place.error / place.budget : null;
  return section(
    [t("where"), " ", said(place.tensor), place.call ? said(`, ${place.call}`) : ""],
    h("p", {}, t("elements", { wrong: number(place.wrong), total: number(place.total) }), " ", message(place.problem)),
    place.patterns &&
      h(
        "ul",
        {},
        place.patterns.map((pattern) => h("li", {}, said(pattern.text))),
      ),
    h(
      "div",
      { class: "pair" },
      place.map && picture(place),
      h(
        "div",
        {},
        h("h3", {}, t("worst-element"), " ", said(element)),
        facts([
          [t("given"), said(place.given)],
          [t("expected"), said(place.expected)],
          [t("error"), place.error != null && said(rounded(place.error))],
          [t("budget"), place.budget != null && said(rounded(place.budget))],
          [t("times-budget"), ratio != null && Number.isFinite(ratio) && factor(ratio)],
        ]),
        listed(t("inputs"), place.inputs),
        listed(t("call"), place.arguments),
      ),
    ),
  );
}

function listed(title, named) {
  const pairs = Object.entries(named ?? {});
  return pairs.length > 0 && [h("h3", {}, title), facts(pairs.map(([name, value]) => [said(name), said(value)]))];
}

const LEVELS = ["0", "≤ ⅛", "≤ ¼", "≤ ½", "≤ 1", "≤ 2", "≤ 8", "≤ 64", "≤ 1024", "> 1024"];
const CELL = 12; // units of the drawing
const SIDE = 400; // of the drawing in pixels, where there is room
const CELLS = 32; // along a side, at most: as many elements make a cell as that needs

/** The slice with the worst element, a square a cell, darker where it is further off. */
function picture(place) {
  const { axes, sizes, rows } = place.map;
  const wide = rows[0].length;
  const [down, right] = axes.length > 1 ? sizes : [1, sizes[0]];
  const block = (size) => Math.ceil(size / CELLS);
  const slice = place.index.map((at, axis) => (axes.includes(axis) ? ":" : at)).join(", ");
  const cells = rows.flatMap((row, y) =>
    [...row].map((level, x) =>
      h(
        "rect",
        { x: x * CELL, y: y * CELL, width: CELL, height: CELL, class: `level-${level}` },
        h("title", {}, `[${y * block(down)}, ${x * block(right)}]: ${LEVELS[level]}`),
      ),
    ),
  );
  const wrong = rows.join("").replace(/[0-4]/g, "").length;
  const scale = SIDE / Math.max(wide, rows.length, 6) / CELL;
  const label = t("picture-label", { slice: `${place.tensor}[${slice}]`, wrong, cells: rows.length * wide });
  return h(
    "figure",
    { class: "picture" },
    h(
      "svg",
      {
        viewBox: `0 0 ${wide * CELL} ${rows.length * CELL}`,
        width: wide * CELL * scale,
        role: "img",
        "aria-label": label,
      },
      cells,
    ),
    h("figcaption", {}, said(`${place.tensor}[${slice}]`), ` · ${sizes.join(" × ")} · `, t("picture-caption")),
    h(
      "ul",
      { class: "scale", "aria-label": t("scale") },
      LEVELS.map((name, level) =>
        h("li", {}, h("span", { class: `swatch level-${level}`, "aria-hidden": "true" }), name),
      ),
    ),
  );
}
