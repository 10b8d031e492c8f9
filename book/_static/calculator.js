// The head calculator: what one layer of attention costs. Whole numbers are BigInt, so that they are exact.
"use strict";

(() => {
  const element = (name) => document.getElementById(`hc-${name}`);
  const grouped = (number) => number.toLocaleString("en-US");
  const short = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 2 });
  const quotient = (a, b) => `${a} / ${b} = ${Number((Number(a) / Number(b)).toPrecision(6))}`;

  function inUnits(number, base, units) {
    let value = Number(number), unit = 0;
    for (; value >= base && unit < units.length - 1; unit++) value /= base;
    return unit ? ` (${short(value)} ${units[unit]})` : "";
  }
  const operations = (number) => grouped(number) + inUnits(number, 1000, ["", "thousand", "million", "billion", "trillion"]);
  const bytes = (number) => `${grouped(number)} bytes` + inUnits(number, 1024, ["", "KiB", "MiB", "GiB", "TiB"]);

  /** A whole number from the field; throws what is to be said, with the field at fault. */
  function read(name, what) {
    const text = element(name).value.trim();
    if (!/^0*[1-9]\d{0,8}$/.test(text)) {
      throw { fault: name, text: `${what} must be a whole number from 1 to 999,999,999.` };
    }
    return BigInt(text);
  }

  function costs() {
    const d = read("d-model", "d_model");
    const heads = read("heads", "The number of heads");
    const kv = element("kv-heads").value.trim() ? read("kv-heads", "The number of K/V heads") : heads;
    const n = read("n", "n");
    const width = BigInt(element("bytes").value);
    if (d % heads) {
      throw { fault: "heads", text: `d_model=${d} cannot be divided among num_heads=${heads}: ${quotient(d, heads)}` };
    }
    if (heads % kv) {
      throw { fault: "kv-heads", text: `num_heads=${heads} cannot share num_kv_heads=${kv}: ${quotient(heads, kv)}` };
    }
    const dK = d / heads;
    const parameters = 2n * d * d + 2n * d * kv * dK;
    const projections = 2n * n * parameters;
    const mixing = 4n * n * n * d;
    return {
      "d-k": grouped(dK),
      parameters: operations(parameters),
      flops: operations(projections + mixing),
      scores: bytes(heads * n * n * width),
      cache: bytes(2n * n * kv * dK * width),
      share: Math.round((100 * Number(mixing)) / Number(projections + mixing)),
    };
  }

  function update() {
    const results = ["d-k", "parameters", "flops", "scores", "cache"];
    let found = {}, fault = null, message;
    try {
      found = costs();
      message = `Each head is ${found["d-k"]} wide. There are ${found.parameters.split(" ")[0]} parameters. `
        + `Scores and mixing are ${found.share} % of the FLOPs.`;
    } catch (error) {
      if (!error.fault) throw error;
      ({ fault, text: message } = error);
    }
    for (const name of results) element(name).textContent = found[name] ?? "–";
    for (const name of ["d-model", "heads", "kv-heads", "n"]) {
      element(name).setAttribute("aria-invalid", String(name === fault));
    }
    element("message").textContent = message;
    element("message").classList.toggle("hc-error", fault !== null);
  }

  const form = document.getElementById("head-calculator");
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  element("missing").hidden = true;
  update();
})();
