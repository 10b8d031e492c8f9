// The drawings of the explorer: a small map of a head, tokens joined by lines, and a matrix with names.
"use strict";

const ROW = 20; // height of a token's row in a drawing
const cut = (token) => (token.length > 12 ? `${token.slice(0, 11)}…` : token);

/** The colour of a head, as a value for a style. Means are drawn in ink. */
function headColour(head) {
  return head < HEAD_COUNT ? `var(--mha-head-${head % HEADS_IN_LAYER}, var(--mha-check))` : "var(--pst-color-text-base)";
}

/** Put a head's weights on a canvas, a pixel each, in the colour of the canvas's text; darker is more. */
function drawMap(canvas, values, n) {
  const [red, green, blue] = getComputedStyle(canvas).color.match(/[\d.]+/g).map(Number);
  Object.assign(canvas, { width: n, height: n });
  const image = new ImageData(n, n);
  values.forEach((value, at) => image.data.set([red, green, blue, 255 * value ** 0.6], 4 * at));
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Names of tokens one below the other. */
function drawNames(tokens, x, anchor, top) {
  return draw("g", { "text-anchor": anchor }, ...tokens.map((token, place) =>
    draw("text", { x, y: top + ROW * (place + 0.5), dy: "0.35em", "data-place": place }, cut(token))));
}

/**
 * Queries on the left, keys on the right, a line for each weight. Behind the keys a bar says the weight that the chosen
 * query gives, and a stroke the mean weight of this head at the same distance.
 * value(query, key) is what the lines show.
 */
function drawLines(sentence, head, value) {
  const { tokens, n } = sentence, top = 22, y = (place) => top + ROW * (place + 0.5);
  const lines = tokens.map((_, query) => {
    const group = draw("g", { "data-query": query });
    tokens.forEach((_, key) => {
      const weight = value(query, key);
      if (weight < 0.02) return;
      group.append(draw("line", { x1: 94, y1: y(query), x2: 186, y2: y(key), "stroke-width": 0.5 + 4 * weight, opacity: Math.min(1, 0.15 + weight) }));
    });
    return group;
  });
  const bars = draw("g", { class: "bars" }, ...tokens.flatMap((_, key) => [
    draw("rect", { class: "bar", x: 278, y: y(key) - 6, height: 12, width: 0 }),
    draw("line", { class: "usual", y1: y(key) - 9, y2: y(key) + 9 }),
  ]));
  const box = { viewBox: `0 0 350 ${top + n * ROW + 4}`, "aria-hidden": "true", class: "lines" };
  return draw("svg", box,
    draw("text", { x: 88, y: 13, "text-anchor": "end", class: "axis" }, "query"),
    draw("text", { x: 192, y: 13, class: "axis" }, "key"), draw("text", { x: 278, y: 13, class: "axis" }, "weight"),
    draw("rect", { class: "chosen", x: 0, width: 92, height: ROW, rx: 3 }),
    ...lines, drawNames(tokens, 88, "end", top), drawNames(tokens, 192, "start", top), bars);
}

/** Show in such a drawing what one query sees. */
function chooseInLines(svg, sentence, head, query) {
  const top = 22, long = 68;
  svg.querySelector(".chosen").setAttribute("y", top + ROW * query);
  svg.querySelectorAll("[data-query]").forEach((group) => group.classList.toggle("is-chosen", +group.dataset.query === query));
  svg.querySelectorAll(".bar").forEach((bar, key) => bar.setAttribute("width", long * sentence.weight(head, query, key)));
  svg.querySelectorAll(".usual").forEach((stroke, key) => {
    const x = 278 + long * sentence.usual(head, query, key);
    stroke.setAttribute("x1", x);
    stroke.setAttribute("x2", x);
  });
}

/** The same as a matrix: a row is a query, a column a key. */
function drawMatrix(sentence, head, value, colour) {
  const { tokens, n } = sentence, left = 84, top = 78, size = 262, cell = size / n;
  const canvas = make("canvas");
  canvas.style.color = colour;
  document.body.append(canvas); // a canvas has its colour only while it is in the page
  drawMap(canvas, Float32Array.from({ length: n * n }, (_, at) => value(Math.floor(at / n), at % n)), n);
  canvas.remove();
  const name = Math.min(12, cell * 0.95);
  const label = (token, place, across) => draw("text", {
    "font-size": name, "data-place": place, "text-anchor": across ? "start" : "end", dy: "0.35em",
    transform: across ? `translate(${left + cell * (place + 0.5)} ${top - 6}) rotate(-90)` : `translate(${left - 6} ${top + cell * (place + 0.5)})`,
  }, cut(token));
  const box = { viewBox: "0 0 350 344", "aria-hidden": "true", class: "matrix" };
  return draw("svg", box,
    draw("image", { href: canvas.toDataURL(), x: left, y: top, width: size, height: size, preserveAspectRatio: "none" }),
    draw("rect", { class: "frame", x: left, y: top, width: size, height: size }),
    draw("rect", { class: "chosen-row", x: left, y: top, width: size, height: cell }),
    ...tokens.map((token, place) => label(token, place, true)), ...tokens.map((token, place) => label(token, place, false)));
}

/** Frame the row of one query in the matrix. */
function chooseInMatrix(svg, sentence, query) {
  svg.querySelector(".chosen-row").setAttribute("y", 78 + (262 / sentence.n) * query);
}
