"use strict";
// Numbers are formatted as in report/formatting.py, so that the text does not change when a table is redrawn.
const page = JSON.parse(document.getElementById("data").textContent);
const MISSING = "–";
document.documentElement.classList.add("js");

function percent(value, digits = 1) {
  return value === null ? MISSING : `${(100 * value).toFixed(digits)}%`;
}

function figures(value, digits = 4) {
  return value === null ? MISSING : String(Number(value.toPrecision(digits)));
}

function whole(value) {
  return value.toLocaleString("en-US");
}

function cellText(value, column) {
  if (value === null) return MISSING;
  if (column.kind === "whole") return whole(value);
  if (column.kind === "percent") return percent(value, column.digits);
  if (column.kind === "number") return value.toFixed(column.digits);
  if (column.kind === "figures") return figures(value, column.digits);
  return String(value);
}

function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

// The light or dark theme follows the system until the reader chooses one.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function remembered() {
    try { return localStorage.getItem("leastwise-theme"); } catch { return null; }
  }

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  }

  function show() {
    button.setAttribute("aria-pressed", String(isDark()));
  }

  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("leastwise-theme", root.dataset.theme); } catch { /* no storage for this page */ }
    show();
  });
  system.addEventListener("change", show);
  show();
})();

// Tables: click on a column to sort, type to filter, fifty lines per page.
(() => {
  const LINES = 50;
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function compare(a, b, column, sign) {
    if (a === null || b === null) return (a === null) - (b === null); // missing values come last in both orders
    return sign * (column.kind === "text" ? collator.compare(a, b) : a - b);
  }

  function row(line, columns) {
    const made = element("tr");
    line.forEach((value, j) => {
      const text = columns[j].kind === "text";
      const cell = element(j ? "td" : "th", undefined, text ? "" : "n");
      if (!j) cell.scope = "row";
      if (text) cell.append(element("bdi", cellText(value, columns[j])));
      else cell.textContent = cellText(value, columns[j]);
      made.append(cell);
    });
    return made;
  }

  function setUp(table) {
    const { columns, lines, what } = page.tables[table.dataset.table];
    const holder = table.closest(".sortable");
    const filter = holder.querySelector("input");
    const status = holder.querySelector(".status");
    const pager = holder.querySelector(".pager");
    const heads = [...table.tHead.rows[0].cells];
    const state = { column: -1, sign: 1, page: 0, word: "" };

    function found() {
      const word = state.word.toLocaleLowerCase();
      const kept = lines.filter((line) => !word || line.some((value, j) => (
        cellText(value, columns[j]).toLocaleLowerCase().includes(word))));
      const j = state.column;
      return j < 0 ? kept : kept.slice().sort((a, b) => compare(a[j], b[j], columns[j], state.sign));
    }

    function draw() {
      const kept = found();
      const pages = Math.max(1, Math.ceil(kept.length / LINES));
      state.page = Math.min(Math.max(state.page, 0), pages - 1);
      const shown = kept.slice(state.page * LINES, (state.page + 1) * LINES);
      table.tBodies[0].replaceChildren(...shown.map((line) => row(line, columns)));
      if (status) status.textContent = `${whole(kept.length)} of ${whole(lines.length)} ${what}`;
      if (!pager) return;
      const [back, next] = pager.querySelectorAll("button");
      pager.querySelector("span").textContent = `Page ${state.page + 1} of ${pages}`;
      back.disabled = state.page === 0;
      next.disabled = state.page === pages - 1;
    }

    function sortBy(j) {
      const numbers = columns[j].kind !== "text";
      state.sign = state.column === j ? -state.sign : (numbers ? -1 : 1);
      state.column = j;
      state.page = 0;
      heads.forEach((head, k) => (k === j
        ? head.setAttribute("aria-sort", state.sign > 0 ? "ascending" : "descending")
        : head.removeAttribute("aria-sort")));
      draw();
    }

    heads.forEach((head, j) => {
      const button = element("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => sortBy(j));
    });
    if (filter) filter.addEventListener("input", () => { state.word = filter.value.trim(); state.page = 0; draw(); });
    if (pager) pager.addEventListener("click", (event) => {
      const step = Number(event.target.dataset.page || 0);
      if (step) { state.page += step; draw(); }
    });
    draw();
  }

  document.querySelectorAll("table[data-table]").forEach(setUp);
})();

// The slider of the threshold: how many rows are accepted, and with how many errors.
(() => {
  const known = page.thresholds;
  if (!known) return;
  const slider = document.getElementById("threshold");
  const choice = document.getElementById("part");
  const spoken = document.getElementById("now-spoken");
  const picture = document.getElementById("risk-spot").ownerSVGElement;
  const [left, above, right, bottom] = picture.dataset.box.split(" ").map(Number);
  let waiting = 0;

  const group = () => known.groups[choice ? Number(choice.value) : 0];
  const x = (share) => left + share * (right - left);
  const y = (error) => bottom - (error / group().top) * (bottom - above);

  function outcome(g, place) {
    const accepted = g.accepted[place];
    return {
      threshold: figures(known.stops[place]),
      accepted: `${whole(accepted)} of ${whole(g.rows)} (${percent(g.coverage[place])})`,
      rejected: whole(g.rows - accepted),
      error: accepted ? `${whole(g.wrong[place])} (${percent(g.error[place])})` : MISSING,
      bound: percent(g.bound[place]),
    };
  }

  function curve(g, name) {
    const points = g.coverage.map((share, k) => [share, g[name][k]]).filter(([, value]) => value !== null);
    return points.length ? `M${points.map(([a, b]) => `${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("L")}` : "";
  }

  function drawn(tag, attributes, text) {
    const made = document.createElementNS(picture.namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text) made.textContent = text;
    return made;
  }

  function redraw() {
    const g = group();
    const marks = g.ticks.flatMap((value) => [
      drawn("line", { x1: left, x2: right, y1: y(value), y2: y(value), class: "grid" }),
      drawn("text", { x: left - 6, y: y(value) + 3.5, "text-anchor": "end", class: "tick" }, `${figures(100 * value, 3)}%`),
    ]);
    picture.querySelector(".levels").replaceChildren(...marks);
    for (const name of ["error", "bound"]) document.getElementById(`risk-${name}`).setAttribute("d", curve(g, name));
  }

  function showConfusions(place) {
    if (!known.confusions) return;
    const counts = known.confusions.counts[place];
    document.querySelectorAll("#confusion tbody td.n").forEach((cell, k) => { cell.textContent = whole(counts[k]); });
  }

  function show() {
    const place = Number(slider.value);
    const g = group();
    const now = outcome(g, place);
    for (const [key, text] of Object.entries(now)) document.getElementById(`now-${key}`).textContent = text;
    const sentence = `Threshold ${now.threshold}: ${now.accepted} accepted, ${now.rejected} rejected, `
      + `errors ${now.error}, upper bound ${now.bound}.`;
    slider.setAttribute("aria-valuetext", now.threshold);
    clearTimeout(waiting); // screen readers announce the final position only
    waiting = setTimeout(() => { spoken.textContent = sentence; }, 400);
    const across = x(g.coverage[place]).toFixed(1);
    const line = document.getElementById("risk-line");
    line.setAttribute("x1", across);
    line.setAttribute("x2", across);
    const spot = document.getElementById("risk-spot");
    spot.setAttribute("cx", across);
    spot.setAttribute("cy", y(g.error[place] ?? 0).toFixed(1));
    showConfusions(place);
  }

  slider.addEventListener("input", show);
  if (choice) choice.addEventListener("change", () => {
    redraw();
    if (known.chosen) slider.value = String(group().start);
    show();
  });
  show();
})();
