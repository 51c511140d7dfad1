// Which networks can be trained, where the time went, and what was run on what.

VIEWS.models = {
  title: () => t("models"),
  tab: () => REPORT.models.length > 0,
  show: () => {
    const trained = REPORT.models.filter((model) => model.trains).length;
    return [
      h(
        "p",
        { class: "headline" },
        h("strong", {}, t("trained", { trained: number(trained), total: number(REPORT.models.length) })),
      ),
      table(
        t("models-caption"),
        [
          { title: t("model"), cell: (model) => said(model.name) },
          {
            title: t("can-be-trained"),
            cell: (model) =>
              h(
                "span",
                { class: `badge verdict-${model.trains ? "passed" : "failed"}` },
                t(model.trains ? "yes" : "no"),
              ),
          },
          { title: t("calls"), number: true, cell: (model) => number(model.calls) },
          { title: verdictName("passed"), number: true, cell: (model) => number(model.passed) },
          { title: t("not-run-calls"), number: true, cell: (model) => (model.not_run ? number(model.not_run) : "") },
          { title: t("what-is-missing"), cell: missing },
        ],
        REPORT.models,
        { class: "wide" },
      ),
    ];
  },
};

function missing(model) {
  const wrong = Object.entries(model.wrong).map(([name, verdict]) =>
    h("li", {}, badge(verdict), " ", BY_FUNCTION.has(name) ? functionLink(name) : said(name)),
  );
  const absent = model.not_mapped.map((name) =>
    h("li", {}, h("span", { class: "badge" }, t("not-mapped")), " ", said(name)),
  );
  return wrong.length + absent.length > 0 && h("ul", { class: "plain" }, wrong, absent);
}

VIEWS.durations = {
  title: () => t("durations"),
  tab: () => true,
  show: () => [
    h("p", {}, t("took", { cases: number(COUNT), seconds: seconds(REPORT.summary.seconds) })),
    farthest(),
    h("div", { class: "pair" }, section(t("by-function"), longestFunctions()), section(t("by-case"), longestCases())),
  ],
};

function longestFunctions() {
  const times = [...BY_FUNCTION].map(([name, rows]) => [name, rows.reduce((sum, row) => sum + secondsOf(row), 0)]);
  const longest = times.sort(([, one], [, other]) => other - one).slice(0, 30);
  return bars(
    t("by-function-caption"),
    longest.map(([name, time]) => ({ name: functionLink(name), value: time, text: seconds(time) })),
  );
}

function longestCases() {
  return bars(
    t("by-case-caption"),
    ordered(ALL, "seconds")
      .slice(0, 30)
      .map((row) => ({ name: caseLink(row), value: secondsOf(row), text: seconds(secondsOf(row)) })),
  );
}

/** Of each function that was timed the call that moves most bytes, by how much longer it takes than a copy of them. */
function farthest() {
  const largest = new Map();
  for (const row of Object.keys(DATA.timings).map(Number)) {
    const timing = timingOf(row);
    const found = largest.get(functionOf(row));
    if (timing.times && (!found || timing.bytes > timingOf(found).bytes)) largest.set(functionOf(row), row);
  }
  const far = [...largest.values()].sort((one, other) => timingOf(other).times - timingOf(one).times);
  if (!far.length) return null;
  return section(
    t("bandwidth"),
    h("p", {}, t("bandwidth-text", { rate: rate(timingOf(far[0]).bandwidth) })),
    timingTable(t("bandwidth-caption"), far),
  );
}

VIEWS.run = {
  title: () => t("run"),
  tab: () => true,
  show: () => [
    facts([
      [t("vendor"), said(`${REPORT.vendor.name} ${REPORT.vendor.version}`)],
      [t("library"), REPORT.vendor.digest && said(REPORT.vendor.digest)],
      [t("standard"), said(`DIOPI ${REPORT.proto_version}`)],
      [t("baseline"), said(`${REPORT.baseline.level} ${REPORT.baseline.digest}`)],
      [t("strict"), REPORT.strict && t("yes")],
      [t("platform"), said(REPORT.environment.platform)],
      [t("machine"), said(`${REPORT.environment.machine}, ${REPORT.environment.cpus} CPU`)],
      ["Python", said(REPORT.environment.python)],
      ...Object.entries(REPORT.environment.packages).map(([name, version]) => [said(name), said(version)]),
    ]),
    REPORT.shuffle && section(t("shuffled", { seed: REPORT.shuffle.seed }), command(REPORT.shuffle.command)),
    REPORT.waivers && waiverSection(REPORT.waivers),
    REPORT.claims && claimSection(REPORT.claims),
  ],
};

function waiverSection({ entries, improvements }) {
  return section(
    t("waivers"),
    table(
      t("waivers-caption"),
      [
        { title: t("pattern"), cell: (use) => said(use.waiver.pattern) },
        { title: t("reason"), cell: (use) => said(use.waiver.reason) },
        { title: t("state"), cell: (use) => t(`waiver-${use.state}`) },
        { title: t("matched"), number: true, cell: (use) => number(use.matched) },
        { title: verdictName("waived"), number: true, cell: (use) => number(use.waived) },
      ],
      entries,
      { class: "wide" },
    ),
    improvements.length > 0 &&
      h(
        "ul",
        {},
        improvements.map((one) =>
          h("li", {}, said(one.pattern), ": ", said(one.was), " → ", verdictName(one.now), ` (${number(one.number)})`),
        ),
      ),
  );
}

function claimSection(claims) {
  const uses = (title, rows) =>
    rows.length > 0 &&
    table(
      title,
      [
        {
          title: t("function"),
          cell: (use) => (BY_FUNCTION.has(use.function) ? functionLink(use.function) : said(use.function)),
        },
        { title: t("element-type"), cell: (use) => said(use.dtype) },
        { title: t("layouts"), cell: (use) => said(use.layouts.join(", ")) },
        {
          title: t("verdict"),
          cell: (use) => Object.entries(use.verdicts).map(([verdict, count]) => [badge(verdict), ` ${number(count)} `]),
        },
      ],
      rows,
    );
  const told = [
    uses(t("declared-wrong"), claims.declared_does_not_work),
    uses(t("works-undeclared"), claims.works_not_declared),
  ];
  return section(t("claims"), told.some(Boolean) ? told : h("p", {}, t("claims-agree")));
}

start();
