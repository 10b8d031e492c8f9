"""The sentence that runs through the book, with its tokens coloured by attention."""

from html import escape

from mha_lib.minilm.minilm import load_sample

LEAST = 0.05  # smaller weights are not written


def sentence_html(query: str, layer: int, head: int) -> str:
    """The tokens of the first stored sentence, each as dark as the weight that a word gives it.

    Args:
        query: the token that asks; it has an outline.
        layer, head: which head of the trained model, counted from 1.

    Raises:
        ValueError: there is no such token in the sentence.
    """
    sample = load_sample()
    tokens = list(sample.tokens[0])
    weights = sample.maps[0][layer - 1, head - 1, tokens.index(query)]  # (n,)
    asks = tokens.index(query)
    drawn = []
    for place, (token, weight) in enumerate(zip(tokens, weights.tolist(), strict=True)):
        number = f"<span>{weight:.2f}</span>" if weight >= LEAST else ""
        classes = "token asks" if place == asks else "token"
        drawn.append(f'<span class="{classes}" style="--share: {weight:.3f}">{escape(token)}{number}</span>')
    title = f"Layer {layer}, head {head}, from “{escape(query)}”:"
    return f'<p class="sentence head-{head - 1}"><span class="sentence-title">{title}</span> {" ".join(drawn)}</p>'
