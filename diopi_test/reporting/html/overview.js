// The first page: what came of the run, in numbers.

VIEWS.overview = {
  title: () => t("overview"),
  tab: () => true,
  show: () => [verdictLine(), warnings(), stack(counted(ALL)), classTable(), wrongFunctions(), limits()],
};

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
  if (incomplete)
    told.unshift(
      h(
        "li",
        {},
        t("incomplete", { number: number(not_run) }),
        " ",
        said(reason),
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
        { title: t("message"), cell: ([, rows]) => said(messageOf(rows[0])) },
      ],
      groups,
      { class: "wide clamped" },
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
