"""What the heads of the model and the rules reach on sentences with labelled links, ready for tables.

`read_sentences` runs the model on sentences; `judge_all` asks its heads about every relation in both directions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mha_lib.minilm.head_scores import owners, word_maps
from mha_lib.minilm.labelled_links import RELATIONS, Labelled
from mha_lib.minilm.link_answers import OFFSETS, collect
from mha_lib.minilm.link_verdicts import Verdict, judge
from mha_lib.minilm.minilm import MiniLM
from mha_lib.real_heads import bert_attention

TO_NOUN = {relation: f"{relation} → noun" for relation in RELATIONS} | {"verb": "verb → subject"}
FROM_NOUN = {relation: f"noun → {relation}" for relation in RELATIONS} | {"verb": "subject → verb"}


def head_name(head: int) -> str:
    """The name of a head that is counted through all layers from 0; layers and heads count from 1.

    >>> head_name(37)
    'L4H2'
    """
    return f"L{head // 12 + 1}H{head % 12 + 1}"


@dataclass(frozen=True)
class Reading:
    """What the model's heads look at in some sentences.

    Attributes:
        sentences: the sentences.
        tokens: the n tokens of each.
        maps: attention weights between the tokens of each, `(heads, n, n)`, heads counted through all layers.
        words: attention weights between the w words of each, `(heads, w, w)`.
    """

    sentences: Sequence[Labelled]
    tokens: list[list[str]]
    maps: list[np.ndarray]
    words: list[np.ndarray]


def read_sentences(model: MiniLM, sentences: Sequence[Labelled]) -> Reading:
    """Run the model on sentences."""
    tokens = [model.tokens(sentence.text) for sentence in sentences]
    layers = [
        model.run(sentence.text, bert_attention)[1] for sentence in sentences
    ]  # (layers, heads, n, n) each
    maps = [weights.reshape(-1, *weights.shape[2:]) for weights in layers]
    places = [owners(sentence.text, names) for sentence, names in zip(sentences, tokens, strict=True)]
    return Reading(sentences, tokens, maps, [*map(word_maps, maps, places)])


def judge_all(reading: Reading, far: bool = False) -> dict[str, Verdict]:
    """The verdict for each relation in both directions.

    Args:
        reading: the sentences and the weights between their words.
        far: leave out, for each relation, the questions that the commonest distance answers.
    """
    verdicts = {}
    for relation in RELATIONS:
        for backwards, labels in enumerate((TO_NOUN, FROM_NOUN)):
            asked = reading.sentences, reading.words, relation, backwards == 1
            answers = collect(*asked)
            if far:
                answers = collect(*asked, without=OFFSETS[answers.offset.mean(axis=0).argmax()])
            verdicts[labels[relation]] = judge(answers)
    return verdicts


def verdict_table(verdicts: Mapping[str, Verdict]) -> str:
    """A Markdown table with a line for each relation and direction."""
    heading = ["", "asked", "head", "right", "distance", "place", "whoever asks", "shuffled", "gain"]
    lines = [f"| {' | '.join(heading)} |", "|---" * len(heading) + "|"]
    for label, v in verdicts.items():
        (low, high), (least, most) = v.share_interval, v.gain_interval
        cells = [label, str(v.questions), ", ".join(dict.fromkeys(map(head_name, v.heads)))]
        cells += [f"**{v.share:.2f}** ({low:.2f}–{high:.2f})"]
        cells += [f"{share:.2f}" for share in (v.offset, v.place, v.whoever, v.shuffled)]
        cells += [f"{v.gain:+.2f} ({least:+.2f}, {most:+.2f})"]
        lines.append(f"| {' | '.join(cells)} |".replace("-", "−"))
    return "\n".join(lines)
