// The explorer of all heads: choose a sentence, a token and heads, and see where they look.
//
// The stored sentences stand in the page (see mha_lib/figures/explorer.py), so they work from a folder. A sentence of
// one's own goes to the model in own_sentence.js, which needs the page to come over http.
"use strict";

const STATIC = new URL(".", document.currentScript.src);
const RULES = ["first noun", "noun before", "noun behind", "noun that fits", "marked as right"];

class Explorer {
  constructor(box) {
    const { sentences, averages, kinds, start } = JSON.parse(box.querySelector("script").textContent);
    this.box = box;
    this.averages = averages; // (72, kinds), in thousandths
    this.kinds = kinds;
    this.sentences = sentences.map((stored) => {
      const maps = Float32Array.from(stored.maps.flat(), (thousandths) => thousandths / 1000);
      return new HeadMaps({ ...stored, maps });
    });
    this.heads = start.heads;
    this.query = start.query;
    this.build();
    this.takeSentence(start.sentence);
    // Maps are pictures, so they are drawn anew when the page changes between light and dark.
    new MutationObserver(() => this.show()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  // --- what stands in the page ------------------------------------------------------------------------------------

  build() {
    this.chooser = make("select", { id: "explorer-sentence", onchange: () => this.takeSentence(+this.chooser.value) });
    this.tokenRow = make("div", { className: "explorer-tokens", attributes: { role: "group", "aria-label": "The token that asks" } });
    moveWithArrows(this.tokenRow, 0, (place) => place === this.query || this.ask(place));
    this.words = make("p", { className: "explorer-words", attributes: { role: "status" } });
    this.marker = make("select", { onchange: () => this.show() }, ...["nothing", ...RULES].map((rule) => make("option", {}, rule)));
    this.markerWords = make("span", { className: "explorer-count", attributes: { role: "status" } });
    this.excess = make("input", { type: "checkbox", onchange: () => this.show() });
    this.matrix = make("input", { type: "checkbox", onchange: () => this.show() });
    this.nouns = make("input", { type: "text", autocomplete: "off", spellcheck: false, oninput: () => this.takeNouns() });
    this.panels = make("div", { className: "explorer-panels" });
    this.table = make("table", { className: "table" });
    this.averageTable = make("table", { className: "table" });
    const scrolling = (name, table) => make("div", { className: "explorer-scroll", tabIndex: 0, attributes: { role: "region", "aria-label": name } }, table);
    this.box.append(
      make("label", { htmlFor: "explorer-sentence" }, "Sentence"), this.chooser,
      this.ownSentence(),
      make("p", { className: "explorer-step" }, make("b", {}, "Who asks?"), " Point at a token, or move with the arrow keys."),
      this.tokenRow,
      make("p", { className: "explorer-step" }, make("b", {}, "Which heads?"), " Choose one or several. A row is a layer; the last column is its mean."),
      this.buildGrid(),
      make("div", { className: "explorer-options" },
        make("label", {}, "Put a ring around heads whose strongest word is the ", this.marker, " "), this.markerWords,
        make("label", {}, this.excess, " only what is above the head’s mean at the same distance"),
        make("label", {}, this.matrix, " matrices in place of lines")),
      this.words, this.panels,
      make("details", {}, make("summary", {}, "The same numbers as a table"), scrolling("Weights", this.table)),
      make("details", {}, make("summary", {}, "Averages over many sentences"), scrolling("Averages", this.averageTable)),
      make("details", {}, make("summary", {}, "Which words are nouns?"),
        make("label", {}, "Nouns, with spaces between them; the rules above know nothing else ", this.nouns)));
  }

  buildGrid() {
    this.buttons = []; // by number of the head
    const button = (head) => {
      const canvas = make("canvas", { attributes: { "aria-hidden": "true" } });
      canvas.style.color = headColour(head);
      const pressed = make("button", { type: "button", title: headName(head), onclick: () => this.toggle(head), attributes: { "aria-label": headName(head) } }, canvas);
      pressed.tabIndex = head ? -1 : 0;
      this.buttons[head] = pressed;
      return pressed;
    };
    const heads = Array.from({ length: LAYER_COUNT }, (_, layer) => [
      make("span", { attributes: { "aria-hidden": "true" } }, `L${layer + 1}`),
      ...Array.from({ length: HEADS_IN_LAYER }, (_, head) => button(layer * HEADS_IN_LAYER + head)), button(HEAD_COUNT + layer)]);
    const numbers = ["", ...Array.from({ length: HEADS_IN_LAYER }, (_, head) => `${head + 1}`), "mean"];
    const grid = make("div", { className: "explorer-grid", attributes: { role: "group", "aria-label": "Heads, a layer in a row" } },
      ...numbers.map((number) => make("span", { attributes: { "aria-hidden": "true" } }, number)), ...heads.flat());
    moveWithArrows(grid, HEADS_IN_LAYER + 1);
    this.layerButtons = Array.from({ length: LAYER_COUNT }, (_, layer) =>
      make("button", { type: "button", onclick: () => this.takeLayer(layer), attributes: { "aria-label": `All heads of layer ${layer + 1}` } }, `${layer + 1}`));
    const all = button(MEAN_OF_ALL);
    all.classList.add("explorer-all");
    all.append("Mean of all 72");
    all.tabIndex = 0;
    return make("div", { className: "explorer-heads" }, grid,
      make("p", { className: "explorer-layers" }, "All twelve heads of layer ", ...this.layerButtons, " ", all));
  }

  /** The form for a sentence of one's own; from a folder, what to do to get it. */
  ownSentence() {
    if (location.protocol === "file:") {
      return make("p", { className: "explorer-own" }, make("b", {}, "Your own sentence? "),
        "This page was opened from a folder, and from there a browser lets no page load the model. In the folder that holds ",
        make("code", {}, "index.html"), ", run ", make("code", {}, "python -m http.server"), " and open ",
        make("code", {}, "http://localhost:8000"), ". The stored sentences work here as well.");
    }
    this.text = make("input", { type: "text", autocomplete: "off", maxLength: 400, value: "The doctor asked the nurse a question because she was new." });
    this.progress = make("progress", { hidden: true, attributes: { "aria-label": "Loading the model" } });
    this.state = make("p", { className: "explorer-state", attributes: { role: "status" } },
      "A click loads the model, 23 MB. It runs in this page: what you type stays on this computer.");
    this.runButton = make("button", { type: "submit" }, "Run the model");
    const form = make("form", { className: "explorer-own", onsubmit: (event) => { event.preventDefault(); this.run(); } },
      make("label", {}, "Your own sentence, in English ", this.text), this.runButton, this.progress, this.state);
    return form;
  }

  // --- what the reader does ---------------------------------------------------------------------------------------

  run() {
    if (!this.worker) {
      this.worker = new Worker(new URL("own_sentence.js", STATIC));
      this.worker.onmessage = ({ data }) => this.hear(data);
      this.worker.onerror = () => this.hear({ error: "The model could not be started." });
    }
    this.runButton.disabled = true;
    this.state.textContent = "Loading and running the model …";
    this.worker.postMessage(this.text.value);
  }

  /** A message of the model: how much is loaded, what is wrong, or the weights. */
  hear({ loaded, total, error, text, tokens, maps, milliseconds }) {
    if (loaded !== undefined) {
      this.progress.hidden = false;
      if (total) Object.assign(this.progress, { max: total, value: loaded });
      return;
    }
    this.runButton.disabled = false;
    this.progress.hidden = true;
    this.state.classList.toggle("explorer-error", Boolean(error));
    if (error) {
      this.state.textContent = error;
      return;
    }
    this.sentences.push(new HeadMaps({ text, tokens, maps }));
    this.takeSentence(this.sentences.length - 1);
    this.state.textContent = `Done: ${tokens.length} tokens in ${(milliseconds / 1000).toFixed(2)} s. Nothing has left this computer.`;
  }

  takeSentence(number) {
    this.chooser.replaceChildren(...this.sentences.map(({ text }, i) => make("option", { value: i }, text)));
    this.chooser.value = number;
    this.sentence = this.sentences[number];
    this.query = Math.min(this.query, this.sentence.n - 1);
    this.nouns.value = [...this.sentence.nouns].join(" ");
    this.tokenRow.replaceChildren(...this.sentence.tokens.map((token, place) => {
      const button = make("button", { type: "button", onclick: () => this.ask(place) },
        make("span", { className: "token" }, token), make("span", { className: "glance", attributes: { "aria-hidden": "true" } }));
      button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && this.ask(place));
      return button;
    }));
    this.show();
  }

  takeNouns() {
    this.sentence.nouns = new Set(this.nouns.value.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean));
    this.show();
  }

  toggle(head) {
    const others = this.heads.filter((other) => other !== head);
    if (others.length === 0) return; // one stays
    this.heads = others.length < this.heads.length ? others : [...this.heads, head];
    this.show();
  }

  takeLayer(layer) {
    this.heads = Array.from({ length: HEADS_IN_LAYER }, (_, head) => layer * HEADS_IN_LAYER + head);
    this.show();
  }

  ask(place) {
    this.query = place;
    this.showQuery();
  }

  // --- what is shown ----------------------------------------------------------------------------------------------

  /** What maps and lines show: the weight, or how far it is above the head's mean at this distance. */
  value(head) {
    const { sentence } = this;
    if (!this.excess.checked) return (query, key) => sentence.weight(head, query, key);
    return (query, key) => Math.max(0, sentence.weight(head, query, key) - sentence.usual(head, query, key));
  }

  show() {
    const { sentence, heads } = this, { n } = sentence;
    this.buttons.forEach((button, head) => {
      const value = this.value(head);
      button.setAttribute("aria-pressed", heads.includes(head));
      drawMap(button.firstChild, Float32Array.from({ length: n * n }, (_, at) => value(Math.floor(at / n), at % n)), n);
    });
    this.panels.replaceChildren(...heads.map((head) => this.panel(head)));
    this.panels.classList.toggle("is-single", heads.length === 1);
    this.showAverages();
    this.showQuery();
  }

  panel(head) {
    const draw = this.matrix.checked ? drawMatrix : drawLines;
    const svg = draw(this.sentence, head, this.value(head), headColour(head));
    svg.addEventListener("click", ({ target }) => target.dataset.place && this.ask(+target.dataset.place));
    const figure = make("figure", {}, make("figcaption", {}, headName(head)), svg);
    figure.style.setProperty("--c", headColour(head));
    return figure;
  }

  showQuery() {
    const { sentence, query, heads } = this, rules = sentence.rules(query);
    [...this.tokenRow.children].forEach((button, place) => {
      button.tabIndex = place === query ? 0 : -1;
      button.setAttribute("aria-pressed", place === query);
      button.lastChild.replaceChildren(...heads.slice(0, HEADS_IN_LAYER).map((head) => {
        const bar = make("i");
        bar.style.cssText = `height: ${100 * sentence.weight(head, query, place)}%; background: ${headColour(head)}`;
        return bar;
      }));
    });
    [...this.panels.children].forEach((panel, at) => {
      const svg = panel.lastChild;
      if (this.matrix.checked) chooseInMatrix(svg, sentence, query);
      else chooseInLines(svg, sentence, heads[at], query);
    });
    this.showRing(rules);
    this.showWords(rules);
    this.showTable(rules);
  }

  /** Put rings around the heads that agree with a rule, and count them. */
  showRing(rules) {
    const places = rules[this.marker.value] ?? [];
    const agree = this.buttons.map((_, head) => places.includes(this.sentence.strongestWord(head, this.query)));
    this.buttons.forEach((button, head) => button.classList.toggle("is-ringed", agree[head]));
    const names = places.map((place) => `“${this.sentence.tokens[place]}”`).join(" or ");
    const count = agree.slice(0, HEAD_COUNT).filter(Boolean).length;
    this.markerWords.textContent = this.marker.value === "nothing" ? ""
      : places.length ? `${names}: ${count} of ${HEAD_COUNT} heads` : "there is none for this token";
  }

  showWords(rules) {
    const { sentence, query, heads } = this, { tokens } = sentence;
    const sentences = heads.slice(0, 4).map((head) => {
      const best = tokens.map((_, key) => key).sort((a, b) => sentence.weight(head, query, b) - sentence.weight(head, query, a));
      const most = best.slice(0, 3).filter((key) => sentence.weight(head, query, key) >= 0.01).map((key) =>
        `${tokens[key]} ${sentence.weight(head, query, key).toFixed(3)} (usual ${sentence.usual(head, query, key).toFixed(3)})`);
      return `${headName(head)}: ${most.join(", ")}.`;
    });
    const more = heads.length > 4 ? ` ${heads.length - 4} more heads are in the table.` : "";
    const named = Object.entries(rules).map(([rule, places]) => `${rule}: ${places.map((place) => tokens[place]).join(", ")}`);
    this.words.replaceChildren(make("b", {}, `“${tokens[query]}” looks most at`), " (usual is the head’s mean at the same distance)", ...sentences.flatMap((said) => [make("br"), said]), more,
      ...(named.length ? [make("br"), make("span", { className: "explorer-rules" }, `Rules without a head: ${named.join("; ")}.`)] : []));
  }

  showTable(rules) {
    const { sentence, query, heads } = this;
    const named = (key) => Object.keys(rules).filter((rule) => rules[rule].includes(key)).join(", ");
    const head = ["Place", "Key", ...heads.map(headName), "Rules"].map((name) => make("th", { scope: "col" }, name));
    const rows = sentence.tokens.map((token, key) => make("tr", {}, make("td", {}, `${key + 1}`), make("th", { scope: "row" }, token),
      ...heads.map((h) => make("td", {}, `${sentence.weight(h, query, key).toFixed(3)} (${sentence.usual(h, query, key).toFixed(3)})`)), make("td", {}, named(key))));
    this.table.replaceChildren(
      make("caption", {}, `Weights of the query “${sentence.tokens[query]}”, token ${query + 1}; in brackets the head’s mean at the same distance`),
      make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  }

  showAverages() {
    const heads = this.heads.filter((head) => head < HEAD_COUNT);
    const head = ["Head", ...this.kinds].map((name) => make("th", { scope: "col" }, name));
    const rows = heads.map((h) => make("tr", {}, make("th", { scope: "row" }, headName(h)),
      ...this.averages[h].map((thousandths) => make("td", {}, (thousandths / 1000).toFixed(3)))));
    this.averageTable.replaceChildren(make("caption", {}, "Where words look, on average over the labelled sentences of the course"),
      make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  }
}

document.querySelectorAll(".explorer").forEach((box) => new Explorer(box));
