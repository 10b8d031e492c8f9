// The head calculator: what one layer of attention costs. Whole numbers are BigInt, so that they are exact.
"use strict";

(() => {
  const element = (name) => document.getElementById(`hc-${name}`);
  const grouped = (number) => number.toLocaleString("en-US");
  const short = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 2 });
  const quotient = (a, b) => `${a} / ${b} = ${Number((Number(a) / Number(b)).toPrecision(6))}`;
  const models = JSON.parse(element("models").textContent);
  const FIELDS = ["d-model", "heads", "kv-heads", "d-k", "layers", "n"];
  const ofModel = (model) => [model.d_model, model.heads, model.kv_heads, model.d_k, model.layers].map(String);

  function inUnits(number, base, units) {
    let value = Number(number), unit = 0;
    for (; value >= base && unit < units.length - 1; unit++) value /= base;
    return unit ? ` (${short(value)}\u00a0${units[unit]})` : "";
  }
  const operations = (number) => grouped(number) + inUnits(number, 1000, ["", "thousand", "million", "billion", "trillion", "quadrillion"]);
  const bytes = (number) => `${grouped(number)} bytes` + inUnits(number, 1024, ["", "KiB", "MiB", "GiB", "TiB"]);

  /** A whole number from the field, or `empty` if nothing stands there; throws what is to be said, with the field at fault. */
  function read(name, what, empty) {
    const text = element(name).value.trim();
    if (!text && empty !== undefined) return empty;
    if (!/^0*[1-9]\d{0,8}$/.test(text)) {
      throw { fault: name, text: `${what} must be a whole number from 1 to 999,999,999.` };
    }
    return BigInt(text);
  }

  function sizes() {
    const d = read("d-model", "d_model");
    const heads = read("heads", "The number of heads");
    const kv = read("kv-heads", "The number of K/V heads", heads);
    const dK = read("d-k", "d_k", null);
    const layers = read("layers", "The number of layers");
    const n = read("n", "n");
    if (dK === null && d % heads) {
      throw { fault: "heads", text: `d_model=${d} cannot be divided among num_heads=${heads}: ${quotient(d, heads)}` };
    }
    if (heads % kv) {
      throw { fault: "kv-heads", text: `num_heads=${heads} cannot share num_kv_heads=${kv}: ${quotient(heads, kv)}` };
    }
    return { d, heads, kv, dK: dK ?? d / heads, layers, n, width: BigInt(element("bytes").value) };
  }

  /** Of one layer: what it is called, how many, and how that is written. */
  function costs({ d, heads, kv, dK, n, width }) {
    const parameters = 2n * d * (heads + kv) * dK;
    const projections = 2n * n * parameters, mixing = 4n * n * n * heads * dK;
    return {
      share: Math.round((100 * Number(mixing)) / Number(projections + mixing)),
      rows: [
        ["parameters", "Parameters", parameters, operations],
        ["weights", "… and their memory", parameters * width, bytes],
        ["flops", "FLOPs, forward", projections + mixing, operations],
        ["scores", "Scores, if written out", heads * n * n * width, bytes],
        ["cache", "Cache of keys and values", 2n * n * kv * dK * width, bytes],
        ["cache-token", "… for each token", 2n * kv * dK * width, bytes],
      ],
    };
  }

  const shapes = ({ d, heads, kv, dK, n }) => [
    ["X, the tokens", [n, d]],
    ["W_Q", [d, heads * dK]],
    ["W_K and W_V, each", [d, kv * dK]],
    ["Q, in heads", [heads, n, dK]],
    ["K and V, in heads, each", [kv, n, dK]],
    ["Scores and weights", [heads, n, n]],
    ["Heads side by side", [n, heads * dK]],
    ["W_O", [heads * dK, d]],
    ["Output", [n, d]],
  ];

  function row(name, ...cells) {
    const tr = document.createElement("tr"), th = document.createElement("th");
    th.scope = "row";
    th.append(...name.split(/_(.)/).map((part, i) => {
      const piece = document.createElement(i % 2 ? "sub" : "span");
      piece.textContent = part;
      return piece;
    }));
    tr.append(th, ...cells.map(([id, text]) => Object.assign(document.createElement("td"), { id, textContent: text })));
    return tr;
  }

  function update() {
    let found = null, fault = null, message;
    try {
      found = sizes();
    } catch (error) {
      if (!error.fault) throw error;
      ({ fault, text: message } = error);
    }
    const empty = { d: 1n, heads: 1n, kv: 1n, dK: 1n, layers: 1n, n: 1n, width: 1n };
    const { rows, share } = costs(found ?? empty), layers = (found ?? empty).layers;
    const shown = (number, written) => (found ? written(number) : "–");
    element("results").tBodies[0].replaceChildren(...rows.map(([id, name, number, written]) =>
      row(name, [`hc-${id}`, shown(number, written)], [`hc-all-${id}`, shown(number * layers, written)])));
    element("shapes").tBodies[0].replaceChildren(...shapes(found ?? empty).map(([name, shape], i) =>
      row(name, [`hc-shape-${i}`, shown(shape, (sizes) => `(${sizes.map(grouped).join(" × ")})`)])));
    if (found) {
      message = `Each head is ${grouped(found.dK)} wide. A layer has ${grouped(rows[0][2])} parameters. `
        + `Scores and mixing are ${share} % of the FLOPs.`;
    }
    for (const name of FIELDS) element(name).setAttribute("aria-invalid", String(name === fault));
    element("message").textContent = message;
    element("message").classList.toggle("hc-error", fault !== null);
  }

  /** The model whose sizes stand in the fields, if there is one. */
  function nameModel() {
    const typed = FIELDS.slice(0, 5).map((name) => element(name).value.trim());
    const at = models.findIndex((model) => ofModel(model).every((size, i) => size === typed[i]));
    element("model").value = at < 0 ? "" : String(at);
  }

  function takeModel() {
    const model = models[element("model").value];
    if (model) ofModel(model).forEach((size, i) => { element(FIELDS[i]).value = size; });
    update();
  }

  const form = document.getElementById("head-calculator");
  element("model").append(...models.map(({ name }, i) => new Option(name, i)));
  element("model").addEventListener("change", takeModel);
  form.addEventListener("input", ({ target }) => {
    if (target !== element("model")) nameModel();
    update();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  element("missing").hidden = true;
  element("model").value = "0";
  takeModel();
})();
