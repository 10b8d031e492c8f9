// What the explorer knows of a sentence: the weights of all heads, averages of them, and what simple rules say.
//
// The heads are numbered 0 to 71, layer by layer. Numbers 72 to 77 are the means of the layers, 78 is that of all.
"use strict";

const LAYER_COUNT = 6, HEADS_IN_LAYER = 12, HEAD_COUNT = LAYER_COUNT * HEADS_IN_LAYER, MEAN_OF_ALL = HEAD_COUNT + LAYER_COUNT;

/** L4H2 for head 37. */
function headName(head) {
  if (head === MEAN_OF_ALL) return "mean of all heads";
  if (head >= HEAD_COUNT) return `mean of layer ${head - HEAD_COUNT + 1}`;
  return `L${Math.floor(head / HEADS_IN_LAYER) + 1}H${(head % HEADS_IN_LAYER) + 1}`;
}

class HeadMaps {
  /**
   * text, tokens: a sentence and its n tokens.
   * maps: 72 · n · n weights, head by head, then query by query.
   * nouns: the words that are nouns, in small letters.
   * fits, links: from the place of a token to the place of the first noun that agrees with it, and to the places that
   *   somebody has marked as right. Only stored sentences have them.
   */
  constructor({ text, tokens, maps, nouns = [], fits = {}, links = {} }) {
    Object.assign(this, { text, tokens, nouns: new Set(nouns), fits, links, n: tokens.length });
    this.maps = Array.from({ length: HEAD_COUNT }, (_, head) => maps.subarray(head * this.n ** 2, (head + 1) * this.n ** 2));
    this.usuals = [];
    const lower = text.toLowerCase();
    const inside = (place) => tokens[place] === "'" && lower.includes(`${tokens[place - 1]}'${tokens[place + 1]}`); // didn't
    this.isDelimiter = tokens.map((token, place) => ["[CLS]", "[SEP]"].includes(token) || !(inside(place) || /[\p{L}\p{N}]/u.test(token)));
    this.firstPiece = []; // for each token, the place where its word starts
    tokens.forEach((token, place) => {
      const goesOn = token.startsWith("##") || inside(place) || inside(place - 1);
      this.firstPiece.push(goesOn ? this.firstPiece[place - 1] : place);
    });
  }

  /** The weights of a head, or of a mean: n · n numbers. */
  map(head) {
    return (this.maps[head] ??= this.mean(head === MEAN_OF_ALL ? 0 : (head - HEAD_COUNT) * HEADS_IN_LAYER,
      head === MEAN_OF_ALL ? HEAD_COUNT : HEADS_IN_LAYER));
  }

  /** The mean over `count` heads from `first` on. */
  mean(first, count) {
    const heads = this.maps.slice(first, first + count);
    return Float32Array.from(heads[0], (_, at) => heads.reduce((sum, map) => sum + map[at], 0) / count);
  }

  /** The weight from token `query` to token `key`. */
  weight(head, query, key) {
    return this.map(head)[query * this.n + key];
  }

  /** The mean weight of the head at the distance between two tokens, whatever stands there: the rule to beat. */
  usual(head, query, key) {
    this.usuals[head] ??= Array.from({ length: 2 * this.n - 1 }, (_, at) => {
      const offset = at - this.n + 1, pairs = this.n - Math.abs(offset);
      let sum = 0;
      for (let i = Math.max(0, -offset); i < Math.min(this.n, this.n - offset); i++) sum += this.weight(head, i, i + offset);
      return sum / pairs;
    });
    return this.usuals[head][key - query + this.n - 1];
  }

  /** The word at which a token looks most, by its first token. Its own word, [CLS], [SEP] and punctuation do not count. */
  strongestWord(head, query) {
    const total = new Map();
    this.tokens.forEach((_, key) => {
      const word = this.firstPiece[key];
      if (this.isDelimiter[key] || word === this.firstPiece[query]) return;
      total.set(word, (total.get(word) ?? 0) + this.weight(head, query, key));
    });
    return [...total].reduce((best, entry) => (entry[1] > best[1] ? entry : best), [-1, -1])[0];
  }

  /** The places of the nouns, by their first tokens. */
  nounPlaces() {
    const words = new Map(); // from a place to the word that starts there
    this.tokens.forEach((token, key) => {
      const word = this.firstPiece[key];
      words.set(word, (words.get(word) ?? "") + token.replace(/^##/, ""));
    });
    return [...words].filter(([, word]) => this.nouns.has(word)).map(([place]) => place);
  }

  /** What rules name that know no more than which words are nouns, and what is right: places by name of the rule. */
  rules(query) {
    const word = this.firstPiece[query], nouns = this.nounPlaces();
    const found = {
      "first noun": nouns[0],
      "noun before": nouns.filter((place) => place < word).at(-1),
      "noun behind": nouns.find((place) => place > word),
      "noun that fits": this.fits[word],
      "marked as right": this.links[word],
    };
    return Object.fromEntries(Object.entries(found).filter(([, places]) => places !== undefined).map(([rule, places]) => [rule, [places].flat()]));
  }
}
