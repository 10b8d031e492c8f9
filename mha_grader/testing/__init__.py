"""What hidden tests are written with.

A hidden test is a cell of ordinary Python in the instructor's notebook. It defines *parts*:

    @part(points=3, example="softmax(np.array([[1.0, 2.0], [3.0, 5.0]]))")
    def values(rng):
        "Every row is the exponentials of its logits divided by their sum."
        x = rng.normal(size=(3, 7))
        expect_close(softmax(x), reference.softmax(x))

Inside a hidden test these names are there without an import: `np`, everything that this package lists, the
student's items by name (`softmax` above is a proxy: calling it runs the student's code in another process),
and `reference`, the instructor's solutions by name. The docstring says what the part proves; students read
it when the part fails. `example` is an expression over the item and `np` on a small *public* input; its
result is shown to students, expected and got, when no known misconception explains the failure.

A part passes only if its body returns. What the `expect_…` functions put into `Mismatch` is shown to
students: shapes, types and sizes of differences, never a value of a hidden input.

A mistake should cost the parts that are about it, and no others. The `…_qkv` and `…_layer` functions make
inputs for that: with *decided* ones a wrong scale makes no difference, with *undecided* ones only the mask does.
"""

from mha_grader.testing.checkers import checker_parts
from mha_grader.testing.errors import CallError, Mismatch
from mha_grader.testing.expectations import (
    expect,
    expect_answer,
    expect_boolean,
    expect_close,
    expect_equal,
    expect_number,
    expect_raises,
    expect_unchanged,
    expect_whole,
    mask_of,
    number_of,
    output_of,
    pair_of,
)
from mha_grader.testing.inputs import (
    decided_layer,
    decided_qkv,
    heads_alone,
    high_qkv,
    low_qkv,
    random_layer,
    random_mask,
    scalar_qkv,
    stored_layer,
    stored_text,
    undecided_layer,
    undecided_qkv,
    wide_qkv,
)
from mha_grader.testing.modules import (
    attribute_of,
    construct,
    expect_gradients,
    expect_trained,
    filled,
    gradients,
    installed,
    keep,
    load_parameters,
    parameters_of,
    reload,
    seed_torch,
    twins,
)
from mha_grader.testing.parts import part, part_for_each
from mha_grader.testing.values import tensor

__all__ = [
    "CallError",
    "Mismatch",
    "attribute_of",
    "checker_parts",
    "construct",
    "decided_layer",
    "decided_qkv",
    "expect",
    "expect_answer",
    "expect_boolean",
    "expect_close",
    "expect_equal",
    "expect_gradients",
    "expect_number",
    "expect_raises",
    "expect_trained",
    "expect_unchanged",
    "expect_whole",
    "filled",
    "gradients",
    "heads_alone",
    "high_qkv",
    "installed",
    "keep",
    "load_parameters",
    "low_qkv",
    "mask_of",
    "number_of",
    "output_of",
    "pair_of",
    "parameters_of",
    "part",
    "part_for_each",
    "random_layer",
    "random_mask",
    "reload",
    "scalar_qkv",
    "seed_torch",
    "stored_layer",
    "stored_text",
    "tensor",
    "twins",
    "undecided_layer",
    "undecided_qkv",
    "wide_qkv",
]
