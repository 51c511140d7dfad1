// The first page: what came of the run, in numbers.

VIEWS.overview = {
  title: () => t("overview"),
  tab: () => true,
  show: () => [
    runFacts(),
    verdictLine(),
    conformance(),
    causes(),
    warnings(),
    stack(counted(ALL)),
    classTable(),
    wrongFunctions(),
    limits(),
    operators(),
  ],
};

/** Date, host, device, options and duration of the run. */
function runFacts() {
  const short = DATA.facts.filter(([name]) => name !== "command");
  const run = DATA.facts.find(([name]) => name === "command");
  return [
    h(
      "dl",
      { class: "run-facts" },
      short.map(([name, value]) => h("div", {}, h("dt", {}, t(`fact-${name}`)), h("dd", { lang: "en" }, unbroken(value)))),
    ),
    run && command(run[1]),
  ];
}

/** Which operators of a framework served each function: those of a library, or those of the framework. */
function operators() {
  if (!DATA.operators) return null;
  const { summary, functions } = DATA.operators;
  const columns = [
    { title: t("function"), cell: (entry) => functionLink(entry.function) },
    { title: t("by-library"), cell: (entry) => operatorNames(entry.by_library) },
    { title: t("by-framework"), cell: (entry) => operatorNames(entry.by_framework) },
  ];
  return h(
    "details",
    {},
    h("summary", {}, t("overrides", summary)),
    summary.unused.length > 0 && h("p", {}, t("overrides-unused"), " ", operatorNames(summary.unused)),
    table(t("overrides-caption"), columns, functions, { class: "wide cards" }),
  );
}

function operatorNames(names) {
  return h("span", { class: "names", lang: "en" }, separated(names, breakable));
}

/** How many functions of each family are implemented, and conform. */
function conformance() {
  const families = REPORT.families;
  if (!families.length) return null;
  const total = (name) => families.reduce((sum, family) => sum + family[name], 0);
  const values = {
    functions: number(total("functions")),
    implemented: number(total("implemented")),
    conforming: number(total("conforming")),
    standard: REPORT.proto_version,
    numerics: REPORT.numerics.declaration.name,
  };
  const columns = [
    { title: t("family"), cell: (family) => said(family.family) },
    { title: t("functions"), number: true, cell: (family) => number(family.functions) },
    { title: t("implemented"), number: true, cell: (family) => number(family.implemented) },
    { title: t("conforming"), number: true, cell: (family) => number(family.conforming) },
    { title: t("not-conforming"), cell: (family) => nameList(family.not_conforming) },
    { title: t("verdict-not_implemented"), cell: (family) => nameList(family.not_implemented) },
  ];
  return h(
    "details",
    {},
    h("summary", {}, DATA.qualified ? t("conformance-with-numerics", values) : t("conformance", values)),
    table(t("conformance-caption"), columns, families, { class: "wide cards" }),
  );
}

/** The causes that affect the exit status, a line about minor failures, and the other causes. */
function causes() {
  const decisive = CAUSES.filter((cause) => cause.counts);
  const others = CAUSES.filter((cause) => !cause.counts);
  const size = ALL.filter((row) => isWrong(row) && isCounted(row)).length;
  return [
    decisive.length > 0 &&
      section(t("causes", { causes: number(decisive.length), cases: number(size) }), decisive.map(causeEntry)),
    minorLine(),
    others.length > 0 &&
      h(
        "details",
        { class: "not-counted" },
        h("summary", {}, t("causes-not-counted", { causes: number(others.length) })),
        others.map(causeEntry),
      ),
  ];
}

function minorLine() {
  if (!MINOR.size) return null;
  const rows = [...MINOR];
  const values = {
    severities: [...new Set(rows.map(severityOf))].map((name) => t(`severity-${name}`)).join(", "),
    cases: number(rows.length),
    functions: number(new Set(rows.map(functionOf)).size),
  };
  return h("p", { class: "minor" }, link(t("minor-failures", values), "cases", { counts: "minor" }));
}

function causeEntry(cause) {
  const names = Object.keys(cause.functions);
  const [likely, place] = diagnosisOf(cause);
  const size = t("cause-size", { cases: number(cause.cases), functions: number(names.length) });
  return h(
    "details",
    { class: "cause" },
    h(
      "summary",
      {},
      `${cause.number}. `,
      h("span", { class: `badge severity-${cause.severity}` }, t(`severity-${cause.severity}`)),
      " ",
      h("span", {}, unbroken(sentenceOf(cause))),
      " ",
      h("small", {}, size, " ", h("code", {}, cause.id), !cause.counts && ` ${t("does-not-count")}`),
    ),
    cause.likely && h("p", {}, t("likely"), " ", likely),
    cause.look_at && h("p", {}, place),
    cause.page && h("p", {}, diagnosisLink(cause)),
    h("p", {}, nameList(names)),
    command(cause.command),
    causeCases(cause),
  );
}

function diagnosisLink(cause) {
  return DATA.docs
    ? h("a", { href: `${DATA.docs.replace(/\/?$/, "/")}${cause.page}` }, t("diagnosis", { id: cause.diagnosis }))
    : h("span", { class: "hint" }, t("definition-page", { page: cause.page }));
}

const LISTED = 20; // cases of a cause that the overview lists; a link opens all of them

function causeCases(cause) {
  return [
    h("p", {}, link(t("cause-cases", { number: number(cause.cases) }), "cases", { cause: cause.id })),
    h(
      "ul",
      { class: "plain" },
      BY_CAUSE.get(cause.id).slice(0, LISTED).map((row) => h("li", {}, caseLink(row))),
      cause.cases > LISTED && h("li", {}, "…"),
    ),
  ];
}

function nameList(names) {
  return h("span", { class: "names" }, separated(names, functionLink));
}

/** Names with commas between them; a line breaks inside a name only if the name is longer than the line. */
function separated(names, show) {
  const last = names.length - 1;
  return names.map((name, place) => [h("span", { class: "unbroken" }, show(name), place < last && ","), place < last && " "]);
}

function verdictLine() {
  const wrong = ALL.filter((row) => isWrong(row) && isCounted(row)).length;
  const values = { wrong: number(wrong), passed: number(REPORT.summary.passed), total: number(REPORT.summary.total) };
  const kind = { 0: "right", 1: "wrong" }[REPORT.exit_status] ?? "none";
  return h(
    "p",
    { class: `headline is-${kind}` },
    h(
      "strong",
      {},
      kind === "wrong"
        ? link(t("headline-wrong", values), "cases", { verdict: "wrong", counts: "yes" })
        : t(`headline-${kind}`, values),
    ),
    h("span", {}, t("headline-counts", values)),
  );
}

function warnings() {
  const { incomplete, not_run, reason, first_not_run } = REPORT.summary;
  const told = REPORT.errors.map((error) => h("li", {}, said(error)));
  told.push(...DATA.declaration.map(([key, text]) => h("li", {}, t(`declaration-${key}`), " ", said(text))));
  if (incomplete)
    told.unshift(
      h(
        "li",
        {},
        t("incomplete", { number: number(not_run) }),
        " ",
        message(reason),
        first_not_run.length > 0 && h("p", {}, t("not-run"), " ", said(first_not_run.join(", "))),
      ),
    );
  return told.length > 0 && h("ul", { class: "warnings" }, told);
}

function classTable() {
  const classes = TABLES.class.filter((name) => REPORT.summary.classes[name]?.total);
  const verdicts = [...SEVERITY].reverse().filter((verdict) => REPORT.summary[verdict]);
  const columns = [
    {
      title: t("class"),
      cell: (name) => [t(`class-${name}`), !isCountedClass(name) && h("small", {}, ` ${t("does-not-count")}`)],
    },
    ...verdicts.map((verdict) => ({
      title: verdictName(verdict),
      number: true,
      cell: (name) => classCell(name, verdict),
    })),
  ];
  return section(t("classes"), table(t("classes-caption"), columns, classes));
}

function classCell(name, verdict) {
  const found = REPORT.summary.classes[name][verdict];
  return found ? link(number(found), "cases", { class: name, verdict }, { class: `count text-${verdict}` }) : "";
}

function wrongFunctions() {
  const groups = [
    ...grouped(
      ALL.filter((row) => isWrong(row) && isCounted(row)),
      functionOf,
    ),
  ]
    .sort(([, one], [, other]) => other.length - one.length)
    .slice(0, 15);
  if (!groups.length) return null;
  return section(
    t("wrong-functions"),
    table(
      t("wrong-functions-caption"),
      [
        { title: t("function"), cell: ([name]) => functionLink(name) },
        {
          title: t("wrong-cases"),
          number: true,
          cell: ([name, rows]) =>
            link(number(rows.length), "cases", { function: name, verdict: "wrong", counts: "yes" }),
        },
        { title: t("first-of-them"), cell: ([, rows]) => caseLink(rows[0], CASES.label[rows[0]]) },
        { title: t("message"), cell: ([, rows]) => message(messageOf(rows[0])) },
      ],
      groups,
      { class: "wide clamped cards" },
    ),
  );
}

function limits() {
  const passed = ALL.filter((row) => verdictOf(row) === "passed" && ratioOf(row));
  const closest = ordered(passed, "ratio").slice(0, 9);
  return h(
    "div",
    { class: "pair" },
    section(t("histogram"), histogram(ALL)),
    closest.length > 0 &&
      section(
        t("closest"),
        table(
          t("closest-caption"),
          [
            { title: t("case"), cell: (row) => caseLink(row) },
            { title: t("ratio"), number: true, cell: (row) => factor(ratioOf(row)) },
          ],
          closest,
        ),
      ),
  );
}
