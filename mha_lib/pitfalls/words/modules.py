"""Mistakes that only layers can make: what is registered, what moves, what dropout drops, what is copied."""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="heads-in-a-list",
        title="Layers in a plain list",
        symptom="The numbers are right, but `parameters()` does not contain these layers, so they are not trained, "
        "saved or moved.",
        reason="You keep layers in a Python list or dict, or weights in plain tensors, but PyTorch finds "
        "only modules and parameters that are attributes.",
        fix="Give each layer an attribute of its own, or put them into an `nn.ModuleList`; make each weight "
        "an `nn.Parameter`.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="mask-not-a-buffer",
        title="A mask that stays where it was made",
        symptom="The layer works on the CPU. On a GPU there is an error about tensors on different devices.",
        reason="You make the mask on one device, in a plain attribute or in `forward`, and `to()` moves "
        "parameters and buffers only.",
        fix="Register the mask as a buffer, or make it on the device of x.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="dtype-fixed",
        title="float32 whatever the layer's dtype is",
        symptom="The layer works in float32. After `.bfloat16()` or `.half()` there is an error about "
        "dtypes.",
        reason="You make a float32 tensor inside, which meets tensors of another dtype once the layer has been "
        "moved.",
        fix="Use a boolean mask, or make the tensor in the dtype of the scores.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="result-in-float32",
        title="The result is always float32",
        symptom="The numbers are right but have the wrong dtype, and the next layer raises an error about "
        "it.",
        reason="You convert to float32 and never back, but a caller with float16 or float64 expects that dtype.",
        fix="Convert the weights back to the dtype of V before you multiply them by V.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0", "small logits"),
    ),
    Pitfall(
        slug="weights-in-float32",
        title="The weights are left in float32",
        symptom="In half precision the output has the dtype of the arguments, but the weights do not.",
        reason="You convert the output back to the dtype of V, but the weights are a result as well.",
        fix="Convert the weights back to the dtype of V before you multiply them by V.",
        passes=(
            "shape",
            "finite",
            "rows sum to 1",
            "masked weights are 0",
            "small logits",
            "no mask",
            "all-True mask",
            "right values",
        ),
    ),
    Pitfall(
        slug="view-of-transposed",
        title="A view of a transposed tensor",
        symptom="Fresh tensors give the right result. Tensors that come from `transpose` raise an error "
        "about size and stride.",
        reason="You join two axes with `view`, which moves no numbers and so fails where these axes are not "
        "adjacent in memory.",
        fix="Use `reshape` or `flatten`, which copy where they must.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="mask-as-parameter",
        title="The mask is a parameter",
        symptom="The layer is right at first. But an optimiser is given the mask, and weight decay or a "
        "step changes it.",
        reason="You wrap the mask in `nn.Parameter`, which is for what is trained.",
        fix="Register it as a buffer, which moves with the layer and is not trained.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="batch-first-forgotten",
        title="The batch taken for the sequence",
        symptom="The result is right for one token or one sequence. Otherwise the sequences of a batch "
        "attend to each other.",
        reason="You read (batch, n, d_model) as (n, batch, d_model), which is what `nn.MultiheadAttention` takes "
        "unless it is made with `batch_first=True`.",
        fix="Keep the batch on axis 0, and attend along axis 1.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="linear-applied-transposed",
        title="A linear layer's weight not transposed",
        symptom="The shapes are right, since the weights are square, but the numbers are wrong everywhere.",
        reason="You multiply by `weight` as it is, but a linear layer stores it as (out, in) and computes x @ "
        "weight.T + bias.",
        fix="Call the layer, or copy its weight as it is.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="projection-without-bias",
        title="Linear layers without bias",
        symptom="A saved layer with biases cannot be loaded, or gives another result.",
        reason="You create linear layers with `bias=False`, or multiply by their weights only, but the "
        "contract says that they have a bias.",
        fix="Leave `bias` at its default, and call the layers.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="gradient-cut-off",
        title="No gradient comes through",
        symptom="The numbers are right, but some inputs or weights get no gradient, and layers are not trained.",
        reason="You take a tensor out of the graph on the way, by `detach()`, `no_grad()`, `.data`, `.item()` or a "
        "new `torch.tensor(...)`.",
        fix="Compute with the tensors themselves from the inputs to the output.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="dropout-in-eval",
        title="Dropout that never stops",
        symptom="Two calls in eval mode give two results.",
        reason="You drop weights in eval mode too: a function such as `F.dropout` does not know the layer's mode.",
        fix="Use an `nn.Dropout` that is made in `__init__`, pass `training=self.training` to `F.dropout`, or pass "
        "`dropout_p=self.p if self.training else 0.0` to `F.scaled_dot_product_attention`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="dropout-before-softmax",
        title="Dropout of scores",
        symptom="With a probability of 1 all keys get the same weight in training.",
        reason="You drop scores, and a score of 0 is a score like any other, so nothing is taken away.",
        fix="Drop weights, after the softmax.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="dropout-on-output",
        title="Dropout of the output",
        symptom="With a probability of 1 the output is 0 in training, without even the bias.",
        reason="You drop features of the output, but dropout belongs on the weights alone.",
        fix="Apply dropout to the weights only, before they are multiplied by the values.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="dropout-on-heads",
        title="Dropout of the heads' results",
        symptom="In training, single features of a token become 0 where whole values should be dropped.",
        reason="You drop features after the average, but dropping a weight takes away all that a token got "
        "from one other token.",
        fix="Apply dropout to the weights, before they are multiplied by the values.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="dropout-missing",
        title="The dropout argument is ignored",
        symptom="Training mode and eval mode give the same output.",
        reason="You accept the argument but never use it.",
        fix="Make an `nn.Dropout(dropout)` and apply it to the weights.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="dropout-not-rescaled",
        title="The kept weights do not grow",
        symptom="The outputs in training are smaller than those in eval mode.",
        reason="You set weights to zero and leave the others as they are, so their sum shrinks in training only.",
        fix="Multiply the others by 1/(1 - dropout), as `nn.Dropout` does.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="dropout-renormalised",
        title="Weights that sum to 1 after dropout",
        symptom="A token with a single key keeps its weight of 1 or loses it; it should double if dropout is 0.5.",
        reason="You divide the weights that are left by their sum, but dropout multiplies them by 1/(1 - dropout), "
        "whatever their sum is.",
        fix="Use what `nn.Dropout` returns as it is.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="dropout-keep-probability",
        title="The probability to keep instead of the one to drop",
        symptom="With a probability of 0 everything is dropped in training.",
        reason="You pass the probability that a weight is kept, but `nn.Dropout` takes the probability that "
        "it is dropped.",
        fix="Pass `dropout` on as it is.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="dropout-by-default",
        title="Dropout that nobody asked for",
        symptom="Without an argument, two calls in training give two results.",
        reason="You drop something even if the caller did not ask for dropout.",
        fix="Leave it out, or let its probability be 0 unless it is asked for.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="fused-qkv-order",
        title="The thirds in another order",
        symptom="The shapes are right, but a single token gets its query instead of its value.",
        reason="You take the last third for the queries, but the order is queries, keys and values.",
        fix="Cut along the features: `q, k, v = ….chunk(3, dim=-1)`, or the rows of the weight: `chunk(3)`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="output-not-copied",
        title="The output projection is not copied",
        symptom="The output differs at each run, since the output projection starts with random numbers.",
        reason="You copy only what is in `in_proj_weight`, but the output projection has its own weights.",
        fix="Copy `out_proj` as well.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="biases-not-copied",
        title="The biases are not copied",
        symptom="With a fresh built-in layer, whose biases are 0, the output is off only by the initial "
        "biases of your layer. After training it is wrong.",
        reason="You copy the weights and leave the biases as they start.",
        fix="Copy `in_proj_bias`, cut into three, and the bias of `out_proj`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="bias-assumed",
        title="A bias assumed",
        symptom="The result is right with biases. Without them there is an error about None.",
        reason="You cut `in_proj_bias` without asking whether there is one: with `bias=False` it is None.",
        fix="Ask first, and set the biases to 0 if there is none.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="biases-left-as-they-start",
        title="Missing biases left as they start",
        symptom="The result is right with biases. Without them the output differs at each run.",
        reason="You skip the biases where there are none to copy, but those of a new linear layer are "
        "random, not 0.",
        fix="Set them to 0.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="weights-shared",
        title="Weights shared, not copied",
        symptom="The new layer is right at first. When one of the two layers is trained, the other one "
        "changes.",
        reason="You make parameters from pieces of the old tensors, which lie in the same memory.",
        fix="Copy the numbers: `copy_` into your parameters, or `clone()` first.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="dropout-lost",
        title="The dropout is not kept",
        symptom="The new layer is right in eval mode. In training it drops nothing, or too much.",
        reason="You make the new layer without the probability of dropout of the old one.",
        fix="Pass `builtin.dropout` on.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="mode-lost",
        title="The mode is not kept",
        symptom="A layer in eval mode comes back in training mode, and drops weights.",
        reason="You leave the new layer as it is created, and every new layer is in training mode.",
        fix="End with `layer.train(builtin.training)`.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="dtype-lost",
        title="The dtype is not kept",
        symptom="A layer in float64 comes back in float32, and then refuses its inputs.",
        reason="You make the new layer in float32, and copying numbers into a parameter does not change its dtype.",
        fix="Move the new layer to the dtype of the old one's weights first.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="weights-kept-from-first-call",
        title="Weights kept from the first call",
        symptom="Other weights that are loaded after a call, or a step of the optimiser, do not change the output.",
        reason="You compute something from the weights once and keep it, but the weights change later.",
        fix="Compute it in each call, from the weights as they are then.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="parameters-frozen",
        title="Parameters that cannot be trained",
        symptom="The numbers are right, but `backward()` raises an error, or the layer never learns.",
        reason="You have parameters that require no gradient.",
        fix="Leave `requires_grad` as it is, and copy numbers into a parameter inside `torch.no_grad()`.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="parameters-not-leaves",
        title="Parameters that were computed",
        symptom="The numbers and gradients are right, but an optimiser refuses the parameters.",
        reason="You copy the numbers while autograd records, so the new parameters are results of the old ones, "
        "and an optimiser takes leaves only.",
        fix="Copy inside `torch.no_grad()`, or use `load_state_dict`.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="source-changed",
        title="The old layer is changed",
        symptom="The new layer is right, but the old one has another mode, dtype or shape than before.",
        reason="You call `eval()`, `float()` or the like on the old layer, which changes it for everyone.",
        fix="Only read from the old layer.",
        passes=("shape", "finite", "right values"),
    ),
)
