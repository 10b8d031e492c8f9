"""Mistakes in latent attention and in attention with normalised queries and keys."""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="latent-scale-by-latent-width",
        title="Scores divided by the root of d_c",
        symptom="The result is right if the latents happen to be as wide as a head. Otherwise the weights "
        "are too even or too sharp.",
        reason="You divide by the root of the latents' width, but a score compares queries and keys of width d_k, "
        "even where the keys are never formed.",
        fix="Divide by √d_k, the width of a head's queries.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="latent-sliced-per-head",
        title="Each head sees a slice of the latents",
        symptom="The shapes are right, but head i never learns what the other slices hold.",
        reason="You cut the latents into slices, one for each head, but every head's keys and values are "
        "made from all of c.",
        fix="Multiply all of c with each head's block of W_UK and W_UV.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="latent-values-from-keys",
        title="Keys and values made with the same weights",
        symptom="The shapes are right where d_k = d_v, but W_UV or W_UK gets no gradient.",
        reason="You use W_UK for the values too, or W_UV for the keys, but keys and values have their own "
        "weights.",
        fix="Compute the keys as c W_UK and the values as c W_UV.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="latent-queries-from-latents",
        title="Queries from the latents",
        symptom="The shapes are right, but W_Q gets no gradient.",
        reason="You make the queries from c with the weights of the keys, but they come from x and W_Q.",
        fix="Compute the queries as x W_Q.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="latent-width-from-d-model",
        title="d_k taken to be d_model / heads",
        symptom="The result is right where the heads together are as wide as the model. Elsewhere there is "
        "an error, or the scores are wrong.",
        reason="You compute the width of a head from d_model, but with latents it can be any number, and "
        "d_v may differ from it.",
        fix="Take the widths from the weights: `W_UK.shape[1] // num_heads`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="latent-keys-formed",
        title="Keys and values are formed after all",
        symptom="The result is right, but memory and work are those of the plain form.",
        reason="You make keys and values for every token, which the absorbed form should avoid.",
        fix="Multiply the queries by W_UK, head by head, and compare them with c itself.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="latent-values-formed",
        title="Values are formed after all",
        symptom="The result is right, but only the keys are absorbed.",
        reason="You make the values of every token before you average them.",
        fix="Average the latents first, and multiply the average by W_UV.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="latent-absorbed-without-transpose",
        title="W_UK in place of its transpose",
        symptom="There is an error about sizes, or the numbers are wrong where d_k = d_c.",
        reason="You multiply the queries by W_UK, which maps latents to keys, but its transpose maps queries to "
        "the width of the latents.",
        fix="Multiply the queries by W_UKᵀ: q · (c W_UK) is (q W_UKᵀ) · c.",
        passes=(),
    ),
    Pitfall(
        slug="qk-norm-of-keys-only",
        title="Only the keys are normalised",
        symptom="Scores still grow with the length of the queries.",
        reason="You do not normalise the queries.",
        fix="Divide both by their lengths.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-of-queries-only",
        title="Only the queries are normalised",
        symptom="Long keys still win.",
        reason="You do not normalise the keys.",
        fix="Divide both by their lengths.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-missing",
        title="Nothing is normalised",
        symptom="Scores grow with the lengths of queries and keys.",
        reason="You multiply the scores by g, but queries and keys keep their lengths.",
        fix="Divide both by their lengths first.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-still-scaled",
        title="Still divided by √d_k",
        symptom="The weights are too even, or too sharp if you multiply.",
        reason="You divide or multiply the cosines by d_k or its root, but that is for sums of d_k products; "
        "g takes its place.",
        fix="Multiply the cosines by g, and divide by nothing.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-without-g",
        title="No factor g",
        symptom="No weight can be more than e² times another one.",
        reason="You use the cosines as scores; they lie between −1 and 1, so no head can prefer one key clearly.",
        fix="Multiply the cosines by g.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-after-scaling",
        title="The norm removes g again",
        symptom="g has no effect, and gets no gradient.",
        reason="You multiply the queries by g before you normalise them, and the norm divides it out.",
        fix="Normalise first, and multiply by g after.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-g-after-softmax",
        title="g multiplies the weights",
        symptom="The weights of a query sum to g.",
        reason="You multiply by g after the softmax, but g should make the scores larger.",
        fix="Multiply the scores by g before the softmax.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-divided-by-g",
        title="Divided by g",
        symptom="The larger g is, the more even the weights are.",
        reason="You treat g as a temperature, but it is a factor.",
        fix="Multiply the cosines by g.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-first-g-for-all",
        title="One g for all heads",
        symptom="The result is right only if all heads have the same g.",
        reason="You use the g of one head for all, or the mean or the sum of all g, but each head has its "
        "own.",
        fix="Keep g in its shape (heads, 1, 1), which broadcasts to the scores.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="qk-norm-over-tokens",
        title="Normalised along the tokens",
        symptom="A token's features depend on the other tokens, even on later ones.",
        reason="You compute lengths along axis −2, over the tokens, but a length belongs to one token.",
        fix="Compute it along the last axis: `norm(dim=-1, keepdim=True)`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-over-heads",
        title="One length for all heads",
        symptom="The scores of each head are smaller than its cosines.",
        reason="You take one length over several heads, but each head of each token has its own length.",
        fix="Normalise after the features are split into heads, along the last axis.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-squared",
        title="Divided by something other than the length",
        symptom="The scores are not cosines. If you divide by the sum of squares, long vectors become short, "
        "and short ones become long.",
        reason="You divide by the sum of squares or of absolute values, but the length is the root of the "
        "sum of squares.",
        fix="Use `norm(dim=-1, keepdim=True)`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-root-mean-square",
        title="The root mean square in place of the length",
        symptom="The scores are d_k times too large.",
        reason="You divide by the root of the *mean* of the squares, as other norms do, so that the vectors have "
        "length √d_k.",
        fix="Divide by the root of the *sum* of the squares.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-without-epsilon",
        title="A vector of zeros gives NaN",
        symptom="The result is right until a query or a key is 0.",
        reason="You divide by a length that can be 0.",
        fix="Add 1e-6 to the length.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="qk-norm-of-values-too",
        title="Values are normalised as well",
        symptom="No output is longer than 1.",
        reason="You normalise the values, whose lengths carry information.",
        fix="Normalise queries and keys only.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="qk-norm-lengths-detached",
        title="Lengths are taken for constants",
        symptom="The output is right, but the gradients of queries and keys are wrong.",
        reason="You take the lengths out of the graph, but they change with the vectors.",
        fix="Leave `detach`, `item` and `no_grad` out.",
        passes=("shape", "finite", "right values"),
    ),
)
