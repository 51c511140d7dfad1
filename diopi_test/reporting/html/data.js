// The cases of a report, which lie in columns: what is asked of one is looked up when it is shown.

const REPORT = DATA.report;
const TABLES = DATA.tables;
const CASES = DATA.cases;
const COUNT = CASES.label.length;

const WRONG = new Set(DATA.unsuccessful);
const SEVERITY = [
  "crashed",
  "timed_out",
  "out_of_memory",
  "failed",
  "flaky",
  "waived",
  "not_implemented",
  "unsupported",
  "passed",
];

const functionOf = (row) => TABLES.function[CASES.function[row]];
const dtypeOf = (row) => TABLES.dtype[CASES.dtype[row]];
const classOf = (row) => TABLES.class[CASES.class[row]];
const verdictOf = (row) => TABLES.verdict[CASES.verdict[row]];
const messageOf = (row) => DATA.messages[row] ?? "";
const checksOf = (row) => TABLES.checks[CASES.checks[row]];
const idOf = (row) => `${functionOf(row)}[${CASES.label[row]}]`;
const ratioOf = (row) => (CASES.ratio[row] === "inf" ? Infinity : CASES.ratio[row]);
const secondsOf = (row) => CASES.microseconds[row] / 1e6;
const isWrong = (row) => WRONG.has(verdictOf(row));
const isCountedClass = (name) => !DATA.uncounted.includes(name);
const MINOR = new Set(DATA.minor); // failed cases whose severity is too low for the exit status
const isCounted = (row) => isCountedClass(classOf(row)) && !MINOR.has(row);
const severityOf = (row) => TABLES.severity[CASES.severity[row]];
const causeOf = (row) => TABLES.cause[CASES.cause[row]];

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}
const commandOf = (row) => `${TABLES.command[CASES.command[row]]}${quoted(idOf(row))}`;

const ALL = Array.from({ length: COUNT }, (_, row) => row);
const LOWER = ALL.map((row) => idOf(row).toLowerCase());
const BY_ID = new Map(ALL.map((row) => [idOf(row), row]));

/** The rows of each value of a column, by value. */
function grouped(rows, valueOf) {
  const groups = new Map();
  for (const row of rows) {
    const value = valueOf(row);
    if (!groups.has(value)) groups.set(value, []);
    groups.get(value).push(row);
  }
  return groups;
}
const BY_FUNCTION = grouped(ALL, functionOf);
const BY_CAUSE = grouped(ALL, causeOf);
/** The sentence of a cause in the reader's language. */
const sentenceOf = (cause) => cause.sentences[Object.keys(LANGUAGES).indexOf(language)];
/** The probable defect of a cause and where to look, in the reader's language if it is translated, else in English. */
function diagnosisOf(cause) {
  const translated = cause.diagnoses[Object.keys(LANGUAGES).indexOf(language)];
  return translated ?? [said(cause.likely), said(cause.look_at)];
}

const CAUSES = REPORT.causes.map((cause, place) => ({ ...cause, ...DATA.causes[place], number: place + 1 }));

/** Number of rows by verdict. */
function counted(rows) {
  const counts = {};
  for (const row of rows) counts[verdictOf(row)] = (counts[verdictOf(row)] ?? 0) + 1;
  return counts;
}

/** The worst verdict there is among rows. */
function worst(counts) {
  return SEVERITY.find((verdict) => counts[verdict]);
}

/** What stands for an element type in an address; there are cases without one. */
function typeKey(dtype) {
  return dtype || "none";
}

const CRITERIA = {
  verdict: (value) => (value === "wrong" ? isWrong : (row) => verdictOf(row) === value),
  counts: (value) => (value === "minor" ? (row) => MINOR.has(row) : (row) => isCounted(row) === (value === "yes")),
  severity: (value) => (row) => severityOf(row) === value,
  cause: (value) => (row) => causeOf(row) === value,
  class: (value) => (row) => classOf(row) === value,
  dtype: (value) => (row) => typeKey(dtypeOf(row)) === value,
  function: (value) => (row) => functionOf(row) === value,
  check: (value) => {
    const index = TABLES.check.indexOf(value);
    return (row) => checksOf(row).some(([check, passed]) => check === index && !passed);
  },
  q: (value) => {
    const words = value.toLowerCase().split(/\s+/).filter(Boolean);
    return (row) => words.every((word) => LOWER[row].includes(word) || messageOf(row).toLowerCase().includes(word));
  },
};

/** The rows that match all parameters that are given. */
function matching(parameters) {
  const tests = Object.keys(CRITERIA)
    .filter((name) => parameters[name])
    .map((name) => CRITERIA[name](parameters[name]));
  return ALL.filter((row) => tests.every((test) => test(row)));
}

const ORDERS = {
  id: null, // as they are
  ratio: (one, other) => (ratioOf(other) ?? -1) - (ratioOf(one) ?? -1) || 0,
  seconds: (one, other) => CASES.microseconds[other] - CASES.microseconds[one],
};

function ordered(rows, order) {
  return Object.hasOwn(ORDERS, order) && ORDERS[order] ? [...rows].sort(ORDERS[order]) : rows;
}

function verdictName(verdict) {
  return t(`verdict-${verdict}`);
}

function badge(verdict) {
  return h("span", { class: `badge verdict-${verdict}` }, verdictName(verdict));
}

function caseLink(row, text = idOf(row)) {
  return link(breakable(text), "case", { id: idOf(row) }, { lang: "en", class: "name" });
}

function functionLink(name) {
  return link(breakable(name), "function", { name }, { lang: "en", class: "name unbroken" });
}

/** A bar in which each verdict has its part, and what the parts are. */
function stack(counts, parameters = {}) {
  const parts = [...SEVERITY].reverse().filter((verdict) => counts[verdict]);
  const total = parts.reduce((sum, verdict) => sum + counts[verdict], 0);
  return h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "parts", "aria-hidden": "true" },
      parts.map((verdict) => h("span", { class: `verdict-${verdict}`, share: counts[verdict] / total })),
    ),
    h(
      "ul",
      { class: "legend" },
      parts.map((verdict) =>
        h("li", {}, link([badge(verdict), " ", number(counts[verdict])], "cases", { ...parameters, verdict })),
      ),
    ),
  );
}

/** How long the call of a case takes, what it moves, and how many times as long as a copy that is; null if not timed. */
function timingOf(row) {
  if (!DATA.timings[row]) return null;
  const [time, repeats, bytes, operations, bandwidth] = DATA.timings[row];
  return { time, repeats, bytes, operations, bandwidth, times: bandwidth && bytes ? (time * bandwidth) / bytes : null };
}

/** Thousand millions a second. */
function rate(perSecond) {
  return (perSecond / 1e9).toPrecision(3);
}

function timingTable(caption, rows) {
  return table(
    caption,
    [
      { title: t("case"), cell: (row) => caseLink(row) },
      { title: t("times-copy"), number: true, cell: (row) => timingOf(row).times && factor(timingOf(row).times) },
      { title: t("call-takes"), number: true, cell: (row) => seconds(timingOf(row).time) },
      { title: t("bytes"), number: true, cell: (row) => number(timingOf(row).bytes) },
      { title: "GB/s", number: true, cell: (row) => rate(timingOf(row).bytes / timingOf(row).time) },
    ],
    rows,
  );
}

const EDGES = [0, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1];
const EDGE_NAMES = ["0", "≤ 1/64", "≤ 1/32", "≤ 1/16", "≤ 1/8", "≤ 1/4", "≤ 1/2", "≤ 1", "> 1"];

/** How many cases use how much of their error budget. */
function histogram(rows) {
  const counts = EDGE_NAMES.map(() => 0);
  for (const row of rows) {
    const ratio = ratioOf(row);
    if (ratio != null) counts[EDGES.filter((edge) => edge < ratio).length] += 1;
  }
  if (!counts.some(Boolean)) return h("p", {}, t("no-budgets"));
  return bars(
    t("histogram-caption"),
    EDGE_NAMES.map((name, place) => ({
      name,
      value: counts[place],
      text: number(counts[place]),
      kind: place > EDGES.length - 1 ? "failed" : "passed",
    })),
  );
}
