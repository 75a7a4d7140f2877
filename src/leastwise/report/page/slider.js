// The threshold: how many rows are decided, how many go to a person, with how many errors.
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
    const decided = g.decided[place];
    return {
      sure: figures(known.stops[place]),
      decided: `${whole(decided)} of ${whole(g.rows)} (${percent(g.coverage[place])})`,
      person: whole(g.rows - decided),
      error: decided ? `${whole(g.wrong[place])} (${percent(g.error[place])})` : NOTHING,
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
    const sentence = `Sure at least ${now.sure}: ${now.decided} decided, ${now.person} left to a person, `
      + `errors ${now.error}, at most ${now.bound}.`;
    slider.setAttribute("aria-valuetext", now.sure);
    clearTimeout(waiting); // a reader is told where the slider rests, not all that it passes
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
