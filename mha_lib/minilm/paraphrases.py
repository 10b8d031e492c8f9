"""Triples of sentences: an anchor, a paraphrase of it, and a distractor that shares only words.

They stand in `paraphrases.txt` beside this file, which also says what they are.
"""

import re
from pathlib import Path

Triple = tuple[str, str, str]  # anchor, paraphrase, distractor


def load_triples() -> tuple[Triple, ...]:
    """Read the triples.

    Raises:
        ValueError: if a block of the file is not three lines.

    >>> load_triples()[0]
    ('The bank raised its interest rates.', 'Loans became more expensive.', 'The hotel raised its flags.')
    """
    lines = Path(__file__).with_name("paraphrases.txt").read_text("utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    triples = []
    for block in text.strip().split("\n\n"):
        sentences = block.split("\n")
        if len(sentences) != 3:
            raise ValueError(
                f"a triple is three lines: an anchor, a paraphrase, a distractor; this is not: {block!r}"
            )
        triples.append((sentences[0], sentences[1], sentences[2]))
    return tuple(triples)


TRIPLES = load_triples()


def word_overlap(first: str, second: str) -> float:
    """The share of words that two sentences have in common, among all words of both.

    >>> word_overlap("The dog sleeps.", "The dog barks!")
    0.5
    """
    one, other = (set(re.findall(r"\w+", text.lower())) for text in (first, second))
    return len(one & other) / len(one | other)
