// WordPiece: from a text to the numbers of its tokens, as BERT does it.
//
// 1. clean:  lower case, no accents, white space is a space.
// 2. split:  at spaces, and around every punctuation mark and every Chinese character.
// 3. pieces: a word that is not in the vocabulary becomes the longest piece at its start that is, then the longest
//            at the start of the rest, and so on. Pieces inside a word begin with ##.
//
// Source: Devlin et al. 2019, BERT, section 3; the rules are those of the tokenizer published with the model.
"use strict";

const SPECIAL = /(\[(?:PAD|UNK|CLS|SEP|MASK)\])/;
const LONGEST_WORD = 100; // letters; a longer word is unknown
const CHINESE = /([\u4E00-\u9FFF\u3400-\u4DBF\u{20000}-\u{2A6DF}\u{2A700}-\u{2B73F}\u{2B740}-\u{2B81F}\u{2B820}-\u{2CEAF}\uF900-\uFAFF\u{2F800}-\u{2FA1F}])/gu;
const PUNCTUATION = /([!-/:-@[-`{-~\p{P}])/gu; // all that is neither letter nor digit in ASCII, and Unicode's own

/** The vocabulary: from a token to its number, which is its line in the file. */
function readVocabulary(file) {
  return new Map(file.split("\n").map((token, number) => [token, number]));
}

/** A text in lower case and without accents: "Café\t!" becomes "cafe !". */
function clean(text) {
  return text
    .replace(/[\t\n\r\p{Z}]/gu, " ")
    .replace(/[\0\uFFFD\p{Cc}\p{Cf}\p{Co}]/gu, "")
    .replace(CHINESE, " $1 ")
    .normalize("NFD").replace(/\p{Mn}/gu, "") // an accented letter becomes a letter and an accent, which goes
    .toLowerCase();
}

/** The longest pieces of a word that are in the vocabulary, from left to right: "homework" → home, ##work. */
function pieces(word, vocabulary) {
  const letters = [...word], found = [];
  if (letters.length > LONGEST_WORD) return ["[UNK]"];
  for (let start = 0; start < letters.length;) {
    let end = letters.length, piece;
    for (; end > start; end--) {
      piece = (start ? "##" : "") + letters.slice(start, end).join("");
      if (vocabulary.has(piece)) break;
    }
    if (end === start) return ["[UNK]"]; // no piece fits: the whole word is unknown
    found.push(piece);
    start = end;
  }
  return found;
}

/** The tokens of a text, from [CLS] to [SEP]. */
function tokenize(text, vocabulary) {
  const tokens = text.split(SPECIAL).flatMap((part) => {
    if (SPECIAL.test(part)) return [part];
    const words = clean(part).replace(PUNCTUATION, " $1 ").split(" ").filter(Boolean);
    return words.flatMap((word) => pieces(word, vocabulary));
  });
  return ["[CLS]", ...tokens, "[SEP]"];
}
