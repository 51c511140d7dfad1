// What all pages are made of: elements, texts in two languages, the theme, and views that the address chooses.

const LANGUAGES = { en: "English", zh: "中文" };
const THEMES = ["auto", "light", "dark"];
const TEXTS = JSON.parse(document.getElementById("texts").textContent);
const DATA = JSON.parse(document.getElementById("data").textContent);

const memory = {
  // What the reader chose; a browser may keep nothing for files.
  get(name) {
    try {
      return localStorage.getItem(`diopi-${name}`);
    } catch {
      return null;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem(`diopi-${name}`, value);
    } catch {
      /* then it holds for this page alone */
    }
  },
};

// The reader's choice decides; otherwise, the page is Chinese if its summary or the browser is.
const languageOfPage = [document.documentElement.lang, navigator.language].some((name) => name.startsWith("zh"));
let language = memory.get("language") in LANGUAGES ? memory.get("language") : languageOfPage ? "zh" : "en";
let theme = THEMES.includes(memory.get("theme")) ? memory.get("theme") : "auto";

/** The text of a key in the reader's language, with {names} replaced by values. */
function t(key, values = {}) {
  const text = TEXTS[key][Object.keys(LANGUAGES).indexOf(language)];
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** An element. Children that are text become text: nothing that comes from data is ever read as HTML. */
function h(tag, attributes, ...children) {
  const space = ["svg", "rect", "title"].includes(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const element = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "share") element.style.setProperty("--share", value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false && child !== ""));
  return element;
}

/** Where a view lies, with its parameters: #/cases?verdict=failed. */
function address(view, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value != null);
  return `#/${view}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

function link(text, view, parameters, attributes = {}) {
  return h("a", { href: address(view, parameters), ...attributes }, text);
}

/** What data say, in the language of the suite whatever the page's is. */
function said(text, tag = "span") {
  return h(tag, { lang: "en", class: "said" }, breakable(text));
}

/** A text with the places at which it may be broken: between the words of names, and after punctuation except in numbers. */
function breakable(text) {
  if (typeof text !== "string") return text;
  return text.split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[\[_/])|(?<=\w-)(?!\d)|(?<=[.,])(?!\d)/).map((part, place) => [place > 0 && h("wbr"), part]);
}

/** A text in which a line breaks inside a word, such as a name, only if the word is longer than the line. */
function unbroken(text) {
  return text.split(" ").map((word, place) => [place > 0 && " ", h("span", { class: "unbroken" }, breakable(word))]);
}

const PHRASES = JSON.parse(document.getElementById("messages").textContent).map(([pattern, translation]) => [
  new RegExp(pattern, "g"),
  translation,
]);

/** A message of the suite in the reader's language; what has no translation stays in English, as in the tooltip. */
function message(text) {
  if (language === "en" || !text) return said(text);
  const translated = PHRASES.reduce((result, [pattern, translation]) => result.replace(pattern, translation), text);
  return h("span", { class: "said", title: text, lang: translated === text ? "en" : language }, breakable(translated));
}

function number(value) {
  return value.toLocaleString(language);
}

function seconds(value) {
  if (value >= 100) return `${value.toFixed(0)} s`;
  if (value >= 1) return `${value.toFixed(1)} s`;
  if (value >= 1e-3) return `${(value * 1e3).toPrecision(3)} ms`;
  return `${(value * 1e6).toPrecision(3)} µs`;
}

function factor(value) {
  if (value === Infinity) return "∞";
  return value < 1e6 ? value.toLocaleString(language, { maximumSignificantDigits: 3 }) : value.toExponential(1);
}

function section(title, ...content) {
  return h("section", {}, h("h2", {}, title), ...content);
}

/** A table of columns { title, number, cell } and rows, each handed to `cell`. */
function table(caption, columns, rows, attributes = {}) {
  const head = columns.map((one) => h("th", { scope: "col", class: one.number && "number" }, one.title));
  const body = rows.map((row, place) =>
    h(
      "tr",
      {},
      columns.map((one, column) =>
        h(
          column ? "td" : "th",
          { scope: column ? null : "row", class: one.number && "number", "data-label": column ? one.title : null },
          one.cell(row, place),
        ),
      ),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", attributes, h("caption", {}, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)),
  );
}

/** Rows of bars with their numbers: a histogram, or what takes how long. Rows are { name, value, text, kind }. */
function bars(caption, rows) {
  const most = Math.max(...rows.map((row) => row.value), Number.MIN_VALUE);
  const body = rows.map((row) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, row.name),
      h("td", { class: "number" }, row.text),
      h("td", { class: "bar" }, h("span", { class: `kind-${row.kind ?? "plain"}`, share: row.value / most })),
    ),
  );
  return h("table", { class: "bars" }, h("caption", {}, caption), h("tbody", {}, body));
}

/** Names with their values; what has none is left out. */
function facts(pairs) {
  return h(
    "dl",
    {},
    pairs
      .filter(([, value]) => value != null && value !== "" && value !== false)
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

function command(text) {
  const done = h(
    "button",
    {
      type: "button",
      onclick: async () => {
        try {
          await navigator.clipboard.writeText(text);
          announce(t("copied"));
        } catch {
          getSelection().selectAllChildren(code);
        }
      },
    },
    t("copy"),
  );
  const code = h("code", { lang: "en" }, unbroken(text));
  return h("div", { class: "command" }, code, done);
}

/** Tell readers of screens what has changed. */
function announce(text) {
  document.querySelector(".status").textContent = text;
}

/** A labeled field of a form: an input, or a choice if there are options, which are [value, text]. */
function field(name, label, value, changed, options) {
  const id = `field-${name}`;
  const control = options
    ? h(
        "select",
        { id, name, onchange: (event) => changed(event.target.value) },
        options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)),
      )
    : h("input", {
        id,
        name,
        type: "search",
        value,
        autocomplete: "off",
        spellcheck: "false",
        oninput: (event) => changed(event.target.value),
      });
  return h("div", { class: "field" }, h("label", { for: id }, label), control);
}

const VIEWS = {}; // by name: { title(parameters), show(parameters) → nodes, tab: whether the navigation has it }

function here() {
  const [view, query] = location.hash.replace(/^#\/?/, "").split("?");
  return {
    view: Object.hasOwn(VIEWS, view) ? view : Object.keys(VIEWS)[0],
    parameters: Object.fromEntries(new URLSearchParams(query ?? "")),
  };
}

/** Change the parameters of this view without a step in the history. */
function remember(view, parameters) {
  history.replaceState(null, "", address(view, parameters));
}

function choice(current, names, title, choose) {
  return h(
    "div",
    { class: "choice", role: "group", "aria-label": title },
    Object.entries(names).map(([key, text]) =>
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(key === current),
          lang: key in LANGUAGES ? key : null,
          onclick: () => {
            choose(key);
            render(`${title} ${text}`);
          },
        },
        text,
      ),
    ),
  );
}

function renderFrame(current) {
  document.documentElement.lang = language;
  document.documentElement.dataset.theme = theme;
  document.querySelector(".skip").textContent = t("skip");
  const tabs = Object.entries(VIEWS).filter(([, view]) => view.tab?.());
  document.querySelector("header").replaceChildren(
    h("span", { class: "brand" }, "DIOPI"),
    h(
      "nav",
      { "aria-label": t("pages") },
      h(
        "ul",
        {},
        tabs.map(([name, view]) =>
          h(
            "li",
            {},
            link(
              view.title({}),
              name,
              {},
              { "aria-current": name === (VIEWS[current].under ?? current) ? "page" : null },
            ),
          ),
        ),
      ),
    ),
    choice(language, LANGUAGES, t("language"), (key) => memory.set("language", (language = key))),
    choice(theme, Object.fromEntries(THEMES.map((key) => [key, t(`theme-${key}`)])), t("theme"), (key) =>
      memory.set("theme", (theme = key)),
    ),
  );
}

/** Show the view of the address. What has focus then is its heading, or the button that asked for it anew. */
function render(told) {
  const { view, parameters } = here();
  const pressed = document.activeElement?.closest(".choice") ? document.activeElement.textContent : null;
  renderFrame(view);
  const title = VIEWS[view].title(parameters);
  const main = document.getElementById("main");
  main.replaceChildren(
    h("h1", { tabindex: "-1" }, breakable(title)),
    ...[VIEWS[view].show(parameters)].flat(Infinity).filter(Boolean),
  );
  document.title = `${title} · ${DATA.title}`;
  document.querySelector("footer").replaceChildren(said(DATA.title), " · ", said(DATA.made));
  if (pressed) [...document.querySelectorAll(".choice button")].find((one) => one.textContent === pressed)?.focus();
  if (told) announce(told);
}

/** Begin: the views are there. */
function start() {
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  addEventListener("hashchange", () => {
    render();
    scrollTo(0, 0);
    document.querySelector("h1").focus({ preventScroll: true });
  });
  render();
}
