// Tables that sort by a click on a column, filter by a word, and show fifty lines at a time.
(() => {
  const LINES = 50;
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function compare(a, b, column, sign) {
    if (a === null || b === null) return (a === null) - (b === null); // what is not known comes last, both ways
    return sign * (column.kind === "text" ? words.compare(a, b) : a - b);
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
