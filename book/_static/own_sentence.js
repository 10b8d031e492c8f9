// The model in a thread of its own, so that the page stays awake while it loads and runs.
//
// The page sends a text and gets messages back: {loaded, total} in bytes while the model is loading, then
// {text, tokens, maps}, or {text, error} if the text cannot be read. Nothing that is typed leaves this computer.
"use strict";

importScripts("wordpiece.js", "minilm.js");

const LONGEST_TEXT = 64; // tokens; what more would be drawn could not be read
let ready;

/** Fetch a file beside this script, and say how much of it has come. */
async function fetchWhole(name) {
  const response = await fetch(`minilm/${name}`);
  if (!response.ok) throw new Error(`${response.url} could not be loaded: ${response.status} ${response.statusText}`);
  const total = Number(response.headers.get("Content-Length")), chunks = [], reader = response.body.getReader();
  let loaded = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(chunks).arrayBuffer();
    chunks.push(value);
    loaded += value.length;
    postMessage({ loaded, total });
  }
}

async function load() {
  const vocabulary = readVocabulary(new TextDecoder().decode(await fetchWhole("vocabulary.txt")));
  const model = new MiniLM(readTensors(await fetchWhole("weights.safetensors")));
  return { vocabulary, model };
}

async function answer(text) {
  ready ??= load().catch((error) => {
    ready = null; // the next sentence tries again
    throw error;
  });
  const { vocabulary, model } = await ready;
  const tokens = tokenize(text, vocabulary);
  if (tokens.length === 2) throw new Error("There is no word in the text.");
  if (tokens.length > LONGEST_TEXT) {
    throw new Error(`The text has ${tokens.length} tokens; this page shows up to ${LONGEST_TEXT}. Shorten it.`);
  }
  const start = performance.now();
  const maps = model.run(tokens.map((token) => vocabulary.get(token)));
  return { text, tokens, maps, milliseconds: performance.now() - start };
}

onmessage = async ({ data: text }) => {
  try {
    postMessage(await answer(text));
  } catch (error) {
    postMessage({ text, error: error.message });
  }
};
