"""Wrong answers in other people's handwriting: by the item and what must be named, or None if nothing may be."""

SOFT = """
def soft(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
"""

ONE_HEAD = (
    SOFT
    + """
def attention(Q, K, V, mask=None):
    s = np.einsum("...id,...jd->...ij", Q, {keys}) / {root}
    if mask is not None:
        s = np.where(mask, s, {hidden})
    w = soft(s)
    return w @ V, w
"""
)

HEADS = (
    SOFT
    + """
def multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads, mask=None):
    B, n, d = X.shape
    f = lambda W: (X @ W).reshape(B, n, num_heads, d // num_heads).transpose(0, 2, 1, 3)
    q, k, v = f(W_Q), f(W_K), f(W_V)
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(d // num_heads)
    if mask is not None:
        s = np.where(mask, s, -1e300)
    o = soft(s) @ v
    return {end}
"""
)

PRUNE = """
def prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads):
    d = W_Q.shape[1] // num_heads
    q, k, v, o = (np.array(W) for W in (W_Q, W_K, W_V, W_O))
    for h in heads:
        a, b = h * d, h * d + d
        {step}
    return q, k, v, o, num_heads - len(heads)
"""

CACHED = (
    SOFT
    + """
class CachedAttention:
    past = None
    def __init__(self, W_Q, W_K, W_V, W_O, num_heads):
        self.q, self.k, self.v, self.o, self.h = W_Q, W_K, W_V, W_O, num_heads
    def cut(self, a):
        return a.reshape(a.shape[0], a.shape[1], self.h, -1).swapaxes(1, 2)
    def forward(self, chunk):
        q, k, v = self.cut(chunk @ self.q), self.cut(chunk @ self.k), self.cut(chunk @ self.v)
        {store} = (k, v) if {new} else tuple(np.concatenate(pair, 2) for pair in zip({store}, (k, v)))
        K, V = {store}
        n, m = q.shape[2], K.shape[2]
        s = q @ K.swapaxes(2, 3) / q.shape[-1] ** 0.5
        s = np.where(np.arange(m)[None] <= np.arange(n)[:, None] + m - n, s, -1e300)
        return (soft(s) @ V).swapaxes(1, 2).reshape(chunk.shape) @ self.o
    def reset(self):
        {store} = None
"""
)

LAYER = """
class MultiHeadAttention(torch.nn.Module):
    def __init__(self, d_model, num_heads, dropout={default}):
        super().__init__()
        self.h, self.p, self.drop = num_heads, dropout, torch.nn.Dropout(dropout)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, torch.nn.Linear(d_model, d_model))
    def forward(self, x, mask=None):
        b, n, d = x.shape
        q, k, v = (f(x).reshape(b, n, self.h, -1).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
        s = torch.einsum("bhid,bhjd->bhij", q, k) / (d // self.h) ** 0.5
        if mask is not None:
            s = s.masked_fill(~mask, torch.finfo(s.dtype).min)
        w = s.softmax(-1) if mask is None else s.softmax(-1) * mask
        w = {drop}
        return self.out_proj((w @ v).transpose(1, 2).reshape(b, n, d))
"""

DECODER = """
def decoder_mask(n, keep=None):
    i = np.arange(n)
    causal = (i[None, :] <= i[:, None])[None, None]
    return causal if keep is None else {both}
"""

RIGHT_ROOT = "np.sqrt(Q.shape[-1])"

ANSWERS = [
    ("single_head.attention", "value-used-as-key", ONE_HEAD.format(keys="V", root=RIGHT_ROOT, hidden=-1e300)),
    ("single_head.attention", None, ONE_HEAD.format(keys="K", root=f"int({RIGHT_ROOT})", hidden=-1e300)),
    (
        "single_head.attention",
        "mask-fill-not-negative-enough",
        ONE_HEAD.format(keys="K", root=RIGHT_ROOT, hidden=-1),
    ),
    (
        "single_head.decoder_mask",
        "masks-or-combined",
        DECODER.format(both="(causal * 1 + keep[:, None, None] * 1) > 0"),
    ),
    (
        "single_head.decoder_mask",
        "padding-replaces-causal",
        DECODER.format(both="np.repeat(keep[:, None, None], n, axis=2)"),
    ),
    (
        "multi_head.multi_head_attention",
        "heads-averaged",
        HEADS.format(end="np.tile(o.mean(1), num_heads) @ W_O"),
    ),
    (
        "multi_head.multi_head_attention",
        "heads-max-pooled",
        HEADS.format(end="np.repeat(o.max(1), num_heads, -1) @ W_O"),
    ),
    (
        "multi_head.multi_head_attention",
        "heads-summed",
        HEADS.format(end="np.concatenate([o.sum(1)] * num_heads, -1) @ W_O"),
    ),
    (
        "multi_head.multi_head_attention",
        None,
        HEADS.format(end="np.tile(np.median(o, axis=1), num_heads) @ W_O"),
    ),
    (
        "efficient_heads.prune_heads",
        "prune-zeroed-not-removed",
        PRUNE.format(step="v[:, a:b] = 0; o[a:b] = 0"),
    ),
    ("efficient_heads.prune_heads", "prune-zeroed-not-removed", PRUNE.format(step="o[a:b] = 0")),
    (
        "efficient_heads.prune_heads",
        "prune-stale-indices",
        PRUNE.format(
            step="q, k, v = (np.hstack([W[:, :a], W[:, b:]]) for W in (q, k, v)); o = np.vstack([o[:a], o[b:]])"
        ),
    ),
    (
        "efficient_heads.CachedAttention",
        "cache-shared-between-objects",
        CACHED.format(store="CachedAttention.past", new="CachedAttention.past is None"),
    ),
    (
        "efficient_heads.CachedAttention",
        None,
        CACHED.format(store="self.past", new="self.past is None or len(k[0, 0]) > 1"),
    ),
    (
        "batched_torch.MultiHeadAttention",
        "dropout-in-eval",
        LAYER.format(default=0.0, drop="torch.nn.Dropout(self.p)(w)"),
    ),
    (
        "batched_torch.MultiHeadAttention",
        "dropout-by-default",
        LAYER.format(default=0.1, drop="self.drop(w)"),
    ),
]
