// One query in the plane: its scores with four keys, the softmax, and the answer made of four values.
"use strict";

const D_K = 2, REACH = 3, UNIT = 50, CENTRE = 165, SIDE = 330; // a plane shows −3 to 3 and a little more
const KEYS = [[2, 1], [-1, 2], [-2, -1], [1, -1.5]], VALUES = [[2.5, 2], [-2, 2.5], [-2.5, -1.5], [1.5, -2.5]];
const NAMES = ["cat", "sat", "mat", "was"];
const x = (vector) => CENTRE + UNIT * vector[0], y = (vector) => CENTRE - UNIT * vector[1];
const written = (vector) => `(${vector.map((number) => number.toFixed(1).replace("-", "−")).join(", ")})`;
const signed = (number) => number.toFixed(2).replace("-", "−");

/** Scores, weights and answer of one query. mask[j]: may key j be attended to? */
function attend(q, keys, values, mask, divisor) {
  const scores = keys.map((key) => (q[0] * key[0] + q[1] * key[1]) / divisor);
  const largest = Math.max(...scores.filter((_, j) => mask[j]));
  const exponentials = scores.map((score, j) => (mask[j] ? Math.exp(score - largest) : 0));
  const sum = exponentials.reduce((a, b) => a + b);
  const weights = exponentials.map((exponential) => exponential / sum);
  const answer = [0, 1].map((c) => values.reduce((total, value, j) => total + weights[j] * value[c], 0));
  return { scores, weights, answer };
}

/** The corners of the outline around points, in order: those from which all others lie on one side. */
function outline(points) {
  const turn = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
  const half = (sorted) => sorted.reduce((corners, point) => {
    while (corners.length > 1 && turn(corners.at(-2), corners.at(-1), point) <= 0) corners.pop();
    return [...corners, point];
  }, []);
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return sorted.length < 3 ? sorted : [...half(sorted).slice(0, -1), ...half(sorted.reverse()).slice(0, -1)];
}

/** A plane with its grid; what is drawn in it comes later. */
function plane(title, ...parts) {
  const lines = [];
  for (let at = -REACH; at <= REACH; at++) {
    const kind = at === 0 ? "axis" : "grid";
    lines.push(draw("line", { class: kind, x1: x([at, 0]), y1: 0, x2: x([at, 0]), y2: SIDE }));
    lines.push(draw("line", { class: kind, x1: 0, y1: y([0, at]), x2: SIDE, y2: y([0, at]) }));
  }
  const svg = draw("svg", { viewBox: `0 0 ${SIDE} ${SIDE}` }, ...lines, ...parts);
  return { svg, figure: make("figure", {}, make("figcaption", {}, title), svg) };
}

function startOneQuery(box) {
  let q = [0.8, 1.6];
  const mask = NAMES.map(() => true);
  const line = draw("line", { class: "direction" });
  const shadows = KEYS.map(() => draw("line", { class: "shadow" }));
  const keyArrows = KEYS.map((key, j) => draw("line", { class: `key head-${j}`, x1: CENTRE, y1: CENTRE, x2: x(key), y2: y(key) }));
  const disks = KEYS.map((key, j) => draw("circle", { class: `disk head-${j}`, cx: x(key), cy: y(key) }));
  const keyNames = KEYS.map((key, j) => draw("text", { x: x(key) + 9 * Math.sign(key[0]), y: y(key) - 12 * Math.sign(key[1]) + 4, "text-anchor": key[0] > 0 ? "start" : "end" }, NAMES[j]));
  const arrow = draw("line", { class: "query", x1: CENTRE, y1: CENTRE });
  const handle = draw("circle", { class: "handle", r: 13, tabindex: 0, role: "application",
    "aria-roledescription": "movable point", "aria-label": "Query q: move it with the arrow keys, with Shift in large steps", "aria-describedby": "one-query-words" });
  const name = draw("text", { class: "query-name", "text-anchor": "middle", dy: "0.35em" }, "q");
  const left = plane("Query and keys", line, ...shadows, ...keyArrows, ...disks, ...keyNames, arrow, handle, name);

  const hull = draw("polygon", { class: "hull" });
  const pulls = VALUES.map((value, j) => draw("line", { class: `pull head-${j}`, x2: x(value), y2: y(value) }));
  const points = VALUES.map((value, j) => draw("circle", { class: `value head-${j}`, cx: x(value), cy: y(value), r: 6 }));
  const valueNames = VALUES.map((value, j) => draw("text", { x: x(value), y: y(value) - 12, "text-anchor": "middle" }, NAMES[j]));
  const mark = draw("circle", { class: "answer", r: 8 });
  const markName = draw("text", { class: "answer-name", dy: "1.9em", "text-anchor": "middle" }, "answer");
  const right = plane("Values and answer", hull, ...pulls, ...points, ...valueNames, mark, markName);
  right.svg.setAttribute("aria-hidden", "true");

  const scaled = make("input", { type: "checkbox", checked: true, onchange: show });
  const rows = NAMES.map((token, j) => {
    const box = make("input", { type: "checkbox", checked: true, onchange: () => { mask[j] = box.checked; show(); } });
    const cells = ["product", "score", "exponential"].map(() => make("td"));
    const bar = make("span", { className: `bar head-${j}` }), weight = make("span");
    const row = make("tr", {}, make("th", { scope: "row" }, make("label", {}, box, ` ${token}`)), ...cells, make("td", { className: "weight" }, weight, bar));
    return { row, cells, bar, weight, box };
  });
  const scoreHead = make("th", { scope: "col" });
  const heads = ["key", "q · k", scoreHead, "exp", "weight"].map((head) => (head instanceof Node ? head : make("th", { scope: "col" }, head)));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows.map(({ row }) => row)));
  const words = make("p", { id: "one-query-words", attributes: { role: "status" } });
  box.append(make("div", { className: "planes" }, left.figure, right.figure),
    make("label", {}, scaled, " divide the scores by √d", make("sub", {}, "k"), " = √2"), make("p", {}, "A key without a tick is masked."), table, words);

  function moveTo(vector) {
    q = vector.map((number) => Math.round(10 * Math.min(REACH, Math.max(-REACH, number))) / 10 + 0);
    show();
  }

  function show() {
    const allowed = NAMES.filter((_, j) => mask[j]).length;
    rows.forEach(({ box }, j) => { box.disabled = allowed === 1 && mask[j]; }); // a query must have somewhere to look
    const { scores, weights, answer } = attend(q, KEYS, VALUES, mask, scaled.checked ? Math.sqrt(D_K) : 1);
    const set = (element, attributes) => Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    const length = Math.hypot(...q), unit = length ? q.map((c) => c / length) : [0, 0];
    set(line, { x1: x(unit.map((c) => -9 * c)), y1: y(unit.map((c) => -9 * c)), x2: x(unit.map((c) => 9 * c)), y2: y(unit.map((c) => 9 * c)) });
    set(arrow, { x2: x(q), y2: y(q) });
    set(handle, { cx: x(q), cy: y(q) });
    set(name, { x: x(q), y: y(q) });
    KEYS.forEach((key, j) => {
      const along = key[0] * unit[0] + key[1] * unit[1], foot = unit.map((c) => along * c);
      set(shadows[j], { x1: x(key), y1: y(key), x2: x(foot), y2: y(foot), visibility: length ? "visible" : "hidden" });
      set(disks[j], { r: 3 + 24 * Math.sqrt(weights[j]) });
      set(pulls[j], { x1: x(answer), y1: y(answer), "stroke-width": 10 * weights[j] });
      for (const part of [keyArrows[j], disks[j], shadows[j], points[j], pulls[j]]) part.classList.toggle("is-masked", !mask[j]);
      const { cells, bar, weight } = rows[j];
      cells[0].textContent = signed(q[0] * key[0] + q[1] * key[1]);
      cells[1].textContent = mask[j] ? signed(scores[j]) : "−∞";
      cells[2].textContent = mask[j] ? Math.exp(scores[j]).toFixed(2) : "0";
      weight.textContent = weights[j].toFixed(2);
      bar.style.width = `${100 * weights[j]}%`;
    });
    set(hull, { points: outline(VALUES.filter((_, j) => mask[j])).map((point) => `${x(point)},${y(point)}`).join(" ") });
    set(mark, { cx: x(answer), cy: y(answer) });
    set(markName, { x: x(answer), y: y(answer) });
    scoreHead.replaceChildren(...(scaled.checked ? ["q · k / √d", make("sub", {}, "k")] : ["score"]));
    const said = NAMES.map((token, j) => `${token} ${mask[j] ? weights[j].toFixed(2) : "masked"}`).join(", ");
    words.textContent = `q = ${written(q)}. Weights: ${said}. Answer = ${written(answer)}.`;
  }

  handle.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 0.5 : 0.1;
    const by = { ArrowRight: [step, 0], ArrowLeft: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (!by) return;
    event.preventDefault();
    moveTo([q[0] + by[0], q[1] + by[1]]);
  });
  const drag = (event) => {
    const { left: from, top, width } = left.svg.getBoundingClientRect(), scale = SIDE / width;
    moveTo([((event.clientX - from) * scale - CENTRE) / UNIT, (CENTRE - (event.clientY - top) * scale) / UNIT]);
  };
  left.svg.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" && event.target !== handle) return; // a finger beside it scrolls the page
    event.preventDefault();
    left.svg.setPointerCapture(event.pointerId);
    handle.focus();
    drag(event);
  });
  left.svg.addEventListener("pointermove", (event) => left.svg.hasPointerCapture(event.pointerId) && drag(event));
  show();
}

document.querySelectorAll(".one-query").forEach(startOneQuery);
