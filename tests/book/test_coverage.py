"""Everything that the course promises to teach is somewhere in the built book.

Each topic names the sections that teach it, by the labels that links point to. A = what is taught, B = wrong ideas
that are met with a run, C = experiments.
"""

import re

import pytest

TOPICS = {
    "A1 scaled dot-product attention: formula, shapes, numbers by hand": (
        "one-head-formula one-head-by-hand one-head-qkv"
    ),
    "A2 one head has one set of weights for each query": "one-head-cannot limit-one-mixture limit-law",
    "A3 who is 'it'? Real heads on a famous sentence": "real-heads-where real-heads-wrong explorer",
    "A4 width of a head, and widths that cannot be": (
        "several-heads-width several-heads-split several-heads-calculator"
    ),
    "A5 each head by itself, in a loop": "several-heads-loop",
    "A6 heads side by side again": "several-heads-combine",
    "A7 the output projection and why it is needed": "several-heads-w-o",
    "A8 the whole formula, from one text or two": "several-heads-layer several-heads-cross",
    "A9 every shape from input to output": "several-heads-shapes",
    "A10 the number of parameters": "several-heads-parameters",
    "A11 work and memory": "several-heads-flops several-heads-memory",
    "A12 many narrow heads or few wide ones": "many-sweep many-width",
    "A13 heads of published models": "several-heads-models",
    "A14 where more heads stop helping": "many-published tab-vaswani",
    "A15 what heads specialise in, measured": (
        "real-heads-offsets real-heads-delimiters real-heads-repetition real-heads-links real-heads-far"
    ),
    "A16 why heads differ at all": "differ-symmetry differ-equal differ-perturbation",
    "A17 heads that can go": "pruning-importance pruning-curve pruning-published efficient-heads-taking-out",
    "A18 heads that share keys and values": (
        "efficient-heads-sharing efficient-heads-bytes efficient-heads-quality pruning-pooling"
    ),
    "A19 all heads in one product": "batched-loop-to-product batched-strides batched-qkv",
    "A20 what batching saves": "batched-counts",
    "A21 the block around the heads": (
        "transformer-block-halves transformer-block-forms transformer-block-gradients"
    ),
    "A22 layers on top of each other": "transformer-block-depth",
    "A23 pictures of several heads, labelled as pictures": "several-heads-can limit-read-out",
    "A24 strengths and weaknesses": "follow-up-advantages follow-up-open",
    "A25 four questions that readers ask": (
        "follow-up-more-heads follow-up-pruning follow-up-grouped follow-up-gpu"
    ),
    "A26 why scores are divided by the root of the width": "one-head-scale",
    "A27 attention without positions is blind to order": "position-blind position-absolute",
    "A28 rotary positions in each head": "position-rotary position-pairs",
    "A29 a slope for each head": "position-alibi fig-alibi",
    "A30 windows and sinks": "position-windows",
    "A31 latent attention": "modern-latent modern-absorbed",
    "A32 scores that stay small": "modern-qk-norm",
    "A33 gates, sinks, a softmax off by one": "modern-sinks",
    "A34 differential attention": "modern-differential",
    "A35 what linear attention gives up": "modern-linear",
    "A36 tiles and pages": "modern-hardware",
    "A37 dividing by the width; RMSNorm and SwiGLU": "modern-mup modern-around",
    "A38 circuits and retrieval heads": "modern-circuits",
    "A39 published models up to today": "modern-models",
    "A40 a language model of one's own": "own-language-model own-sampling own-heads",
    "A41 relations: related words, far ones, cause and effect; the links of example sentences": (
        "real-heads-where real-heads-related real-heads-published"
    ),
    "A42 one product or eight; attention over space and features; what a channel carries; what goes in": (
        "speed-products several-heads-analogies several-heads-before several-heads-next-word"
    ),
    "B1 a head sees a slice of the embedding": "several-heads-all-features misconception-slices",
    "B2 narrow heads must specialise": "differ-equal misconception-forced",
    "B3 several heads have more parameters": "several-heads-parameters misconception-parameters",
    "B4 memory and time do not depend on the heads": "several-heads-memory kernels-memory misconception-cost",
    "B5 the root of d_model divides too little": (
        "one-head-scale several-heads-scale misconception-under-scaling"
    ),
    "B6 heads must never be summed": "several-heads-sum misconception-sum",
    "B7 the output projection gives heads votes": "several-heads-not-votes misconception-weighing",
    "B8 one head learns one relation": "limit-read-out limit-ways misconception-one-relation",
    "B9 heads of width one are useless": "many-width misconception-zone",
    "B10 layer and head number tell what a head does": "real-heads-wrong misconception-tables",
    "B11 nothing is gained beyond so many heads": "many-published misconception-more-heads",
    "B12 the embedding is split, then projected": "several-heads-all-features misconception-subspaces",
    "C1 the limit of one head, as a law": "limit-task limit-law limit-proof limit-tokens",
    "C2 heads at equal width": "many-sweep many-bottleneck",
    "C3 the heads of a trained model": "real-heads-where real-heads-links real-heads-sceptic",
    "C4 the trained model with heads removed": "pruning-task pruning-curve pruning-removal",
    "C5 mistakes that run": "pitfalls-survivors pitfalls-loss pitfalls-by-slug",
    "C6 what takes two layers": "induction-depth induction-circuit induction-ablation",
}


@pytest.fixture(scope="module")
def anchors(book):
    """Every id on a page that was written for the book."""
    pages = [path.read_text("utf-8") for path in book.glob("book/*.html")]
    return {anchor for page in pages for anchor in re.findall(r'\bid="([^"]+)"', page)}


def test_no_topic_is_forgotten():
    numbers = [topic.split()[0] for topic in TOPICS]
    expected = {"A": range(1, 43), "B": range(1, 13), "C": range(1, 7)}
    assert numbers == [f"{kind}{number}" for kind, those in expected.items() for number in those]


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_is_taught_where_the_table_says(anchors, topic):
    assert [label for label in TOPICS[topic].split() if label not in anchors] == []
