// The attention explorer: choose a sentence, a layer and a head, point at a token, and see where it looks.
// The data stand in the page (see mha_lib/explorer.py): weights in thousandths. Nothing is loaded.
"use strict";

(() => {
  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const number = (thousandths) => (thousandths / 1000).toFixed(3);

  function start(explorer) {
    const { sentences, start } = JSON.parse(explorer.querySelector("script").textContent);
    let query = start[3];

    const choice = (label, names, chosen) => {
      const select = make("select", {}, ...names.map((name, i) => make("option", { value: i }, name)));
      select.value = chosen;
      select.addEventListener("change", () => show(select === sentence));
      explorer.append(make("label", {}, label, " ", select));
      return select;
    };
    const counted = (list) => list.map((_, i) => `${i + 1}`);
    const sentence = choice("Sentence", sentences.map((s) => s.text), start[0]);
    const layer = choice("Layer", counted(sentences[0].maps), start[1]);
    const head = choice("Head", counted(sentences[0].maps[0]), start[2]);

    const row = make("div", { className: "explorer-tokens" });
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", "Who looks? Choose a token with the pointer or with the arrow keys");
    const words = make("p", { className: "explorer-words" });
    words.setAttribute("role", "status");
    const caption = make("caption");
    const body = make("tbody");
    const heads = ["Place", "Key", "Weight"].map((name) => make("th", { scope: "col" }, name));
    const table = make("table", { className: "table" }, caption, make("thead", {}, make("tr", {}, ...heads)), body);
    explorer.append(row, words, make("details", {}, make("summary", {}, "The same numbers as a table"), table));

    const point = (place, focus) => {
      query = place;
      show();
      if (focus) row.children[place].focus();
    };
    row.addEventListener("keydown", (event) => {
      const last = row.children.length - 1;
      const to = { ArrowRight: query + 1, ArrowDown: query + 1, ArrowLeft: query - 1, ArrowUp: query - 1, Home: 0, End: last };
      if (!(event.key in to)) return;
      event.preventDefault();
      point(Math.min(Math.max(to[event.key], 0), last), true);
    });

    function newSentence(tokens) {
      query = Math.min(query, tokens.length - 1);
      row.replaceChildren(...tokens.map((token, place) => {
        const button = make("button", { type: "button" }, make("span", {}, token), make("span"));
        button.addEventListener("focus", () => place === query || point(place));
        button.addEventListener("click", () => point(place));
        button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && point(place));
        return button;
      }));
    }

    function show(changed) {
      const { tokens, maps } = sentences[sentence.value];
      if (changed) newSentence(tokens);
      const weights = maps[layer.value][head.value][query];
      [...row.children].forEach((button, place) => {
        button.tabIndex = place === query ? 0 : -1;
        button.setAttribute("aria-pressed", place === query);
        button.style.setProperty("--weight", `${weights[place] / 10}%`);
        button.lastChild.textContent = number(weights[place]);
      });
      const order = tokens.map((_, place) => place).sort((a, b) => weights[b] - weights[a]);
      const seen = order.slice(0, 3).filter((place) => weights[place] > 0);
      const most = seen.map((place) => `${tokens[place]} (${number(weights[place])})`);
      words.textContent = `“${tokens[query]}” looks most at ${most.join(", ")}.`;
      caption.textContent =
        `Weights of the query “${tokens[query]}”, token ${query + 1}, in layer ${+layer.value + 1}, head ${+head.value + 1}`;
      body.replaceChildren(...tokens.map((token, place) => make("tr", {},
        make("td", {}, `${place + 1}`), make("th", { scope: "row" }, token), make("td", {}, number(weights[place])))));
    }

    show(true);
  }

  document.querySelectorAll(".explorer").forEach(start);
})();
