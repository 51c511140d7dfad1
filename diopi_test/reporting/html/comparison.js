// Two runs compared: what broke, what was fixed, what is less accurate or slower.

const KINDS = ["broken", "otherwise", "fixed", "new", "gone"];
const PAGE = 200; // rows that are shown

VIEWS.changes = {
  title: () => t("comparison"),
  tab: () => true,
  show: showChanges,
};

function verdictCell(verdict) {
  return h("span", { class: `badge verdict-${verdict ?? "not_run"}` }, t(`verdict-${verdict ?? "not_run"}`));
}

function showChanges(parameters) {
  const broken = DATA.comparison.cases.filter((one) => one.change === "broken" && one.counts).length;
  return [
    h(
      "p",
      { class: `headline is-${broken ? "wrong" : "right"}` },
      h("strong", {}, broken ? t("broken-headline", { number: number(broken) }) : t("nothing-broken")),
      h(
        "span",
        {},
        said(DATA.title),
      ),
    ),
    DATA.warnings.length > 0 &&
      h(
        "ul",
        { class: "warnings" },
        DATA.warnings.map((warning) => h("li", {}, said(warning))),
      ),
    h(
      "ul",
      { class: "tiles" },
      Object.entries(DATA.counts).map(([name, count]) =>
        h("li", {}, h("strong", {}, number(count)), " ", t(`change-${name}`)),
      ),
    ),
    changedCases(parameters),
    lessAccurate(),
    slower(),
  ];
}

function changedCases(parameters) {
  const given = { q: "", change: "", ...parameters };
  const list = h("div", {});
  const shown = h("p", { class: "shown" });
  function update() {
    const words = given.q.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = DATA.comparison.cases.filter(
      (one) =>
        (!given.change || one.change === given.change) &&
        words.every((word) => `${one.id} ${one.message}`.toLowerCase().includes(word)),
    );
    rows.sort((one, other) => KINDS.indexOf(one.change) - KINDS.indexOf(other.change));
    shown.textContent = t("changes-shown", { shown: number(rows.length), total: number(DATA.comparison.cases.length) });
    announce(shown.textContent);
    list.replaceChildren(
      changeTable(rows.slice(0, PAGE)),
      rows.length > PAGE ? h("p", { class: "hint" }, t("narrow", { number: number(PAGE) })) : "",
    );
  }
  const changed = (name) => (value) => {
    given[name] = value;
    remember("changes", given);
    update();
  };
  update();
  return section(
    t("changed-cases"),
    h(
      "form",
      { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
      field("q", t("search"), given.q, changed("q")),
      field("change", t("change"), given.change, changed("change"), [
        ["", t("any")],
        ...KINDS.map((kind) => [kind, t(`change-${kind}`)]),
      ]),
    ),
    shown,
    list,
  );
}

function changeTable(rows) {
  if (!rows.length) return h("p", {}, t("no-cases"));
  return table(
    t("changed-cases"),
    [
      { title: t("case"), cell: (one) => said(one.id) },
      {
        title: t("change"),
        cell: (one) => [t(`change-${one.change}`), !one.counts && h("small", {}, ` ${t("does-not-count")}`)],
      },
      { title: t("before"), cell: (one) => verdictCell(one.before) },
      { title: t("after"), cell: (one) => verdictCell(one.after) },
      { title: t("message"), cell: (one) => said(one.message) },
    ],
    rows,
    { class: "wide cases clamped cards" },
  );
}

function lessAccurate() {
  const rows = DATA.comparison.less_accurate;
  return (
    rows.length > 0 &&
    section(
      t("change-less accurate"),
      table(
        t("less-accurate-caption"),
        [
          { title: t("case"), cell: (one) => said(one.id) },
          { title: t("before"), number: true, cell: (one) => factor(one.before) },
          { title: t("after"), number: true, cell: (one) => factor(one.after) },
        ],
        rows.slice(0, PAGE),
      ),
    )
  );
}

function slower() {
  const rows = DATA.comparison.slower;
  return (
    rows.length > 0 &&
    section(
      t("change-slower"),
      table(
        t("slower-caption"),
        [
          { title: t("function"), cell: (one) => said(one.function) },
          { title: t("before"), number: true, cell: (one) => seconds(one.before) },
          { title: t("after"), number: true, cell: (one) => seconds(one.after) },
          { title: t("times"), number: true, cell: (one) => (one.before ? factor(one.after / one.before) : "∞") },
          { title: t("what-is-timed"), cell: (one) => t(one.timed ? "calls-alone" : "whole-cases") },
        ],
        rows.slice(0, PAGE),
      ),
    )
  );
}

start();
