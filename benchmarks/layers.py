"""The layers of the course against their peers and against the floor, in one run, on a processor or on a CUDA card.

    python -m benchmarks.layers            the quick set, about two minutes
    python -m benchmarks.layers --full     all shapes

The *floor* is what no layer of this kind can avoid: the same matrix products and PyTorch's fused attention between
them, without a module around. Every contestant must give the floor's result before it is measured.
"""

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.measure import command_line, interleaved, summary, write
from mha_lib.fused import FusedAttention, KVCache
from mha_lib.torch_attention import MultiHeadAttention, attention

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Shape:
    """Sizes of one comparison."""

    batch: int
    n: int
    d_model: int
    heads: int
    kv_heads: int = 0  # as many as heads, if 0
    mask: str = ""  # "", "causal" or "padding"

    def __str__(self) -> str:
        shared = f", K/V heads {self.kv_heads}" if self.kv_heads else ""
        return f"({self.batch}, {self.n}, {self.d_model}, {self.heads}{shared}) {self.mask}".strip()

    @property
    def kv(self) -> int:
        """Heads of keys and values."""
        return self.kv_heads or self.heads


QUICK = (
    Shape(32, 64, 256, 8),
    Shape(8, 256, 512, 8),
    Shape(8, 256, 512, 8, mask="causal"),
    Shape(8, 256, 512, 8, mask="padding"),
    Shape(8, 256, 512, 8, kv_heads=2, mask="causal"),
    Shape(1, 1024, 1024, 16, mask="causal"),
)
FULL = (
    *QUICK,
    Shape(32, 64, 256, 8, mask="causal"),
    Shape(32, 64, 256, 8, mask="padding"),
    Shape(4, 512, 512, 8),
    Shape(2, 1024, 768, 12),
    Shape(2, 1024, 768, 12, mask="causal"),
    Shape(2, 1024, 1024, 16, kv_heads=4, mask="causal"),
    Shape(1, 4096, 1024, 16),
    Shape(1, 4096, 1024, 16, mask="causal"),
    Shape(1, 4096, 1024, 16, kv_heads=4, mask="causal"),
)


class Peers:
    """Every way of computing the same layer, with the same weights."""

    def __init__(self, shape: Shape, dtype: torch.dtype, training: bool) -> None:
        torch.manual_seed(0)
        self.shape = shape
        self.d_k = shape.d_model // shape.heads
        options: dict[str, Any] = {"device": DEVICE, "dtype": dtype}
        self.x = torch.randn(shape.batch, shape.n, shape.d_model, **options)
        self.fused = FusedAttention(shape.d_model, shape.heads, shape.kv, shape.mask == "causal").to(
            **options
        )
        self.readable = MultiHeadAttention(shape.d_model, shape.heads).to(**options)
        self.builtin = nn.MultiheadAttention(shape.d_model, shape.heads, batch_first=True, **options)
        if shape.kv == shape.heads:
            self._copy_weights()
        lengths = torch.linspace(shape.n // 2, shape.n, shape.batch, device=DEVICE).long()
        self.keep = torch.arange(shape.n, device=DEVICE) < lengths[:, None]  # (batch, n)
        self.causal = torch.ones(shape.n, shape.n, dtype=torch.bool, device=DEVICE).tril()  # (n, n)
        for module in (self.fused, self.readable, self.builtin):
            module.train(training)

    @torch.no_grad()
    def _copy_weights(self) -> None:
        weights, biases = self.fused.qkv_proj.weight, self.fused.qkv_proj.bias
        inputs = (self.readable.q_proj, self.readable.k_proj, self.readable.v_proj)
        for linear, weight, bias in zip(inputs, weights.chunk(3), biases.chunk(3), strict=True):
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        self.builtin.in_proj_weight.copy_(weights)
        self.builtin.in_proj_bias.copy_(biases)
        for linear in (self.readable.out_proj, self.builtin.out_proj):
            linear.load_state_dict(self.fused.out_proj.state_dict())

    @property
    def mask(self) -> Tensor | None:
        """The mask of the readable forms, True = may attend."""
        return {"": None, "causal": self.causal, "padding": self.keep[:, None, None]}[self.shape.mask]

    def all(self) -> dict[str, Callable[[], Tensor]]:
        """The contestants that exist for this shape."""
        found: dict[str, Callable[[], Tensor]] = {"floor": self.floor, "fused": self.ours}
        if self.shape.kv != self.shape.heads:
            return found | {"fused, K and V repeated": self.repeated}
        return found | {
            "nn.MultiheadAttention": self.module,
            "nn.MultiheadAttention, weights": self.module_with_weights,
            "packed projection and SDPA": self.packed,
            "readable": lambda: self.readable(self.x, self.mask),
            "loop over heads": self.loop,
        }

    def floor(self) -> Tensor:
        """The products and the kernel."""
        shape, fused = self.shape, self.fused
        kernel: dict[str, Any] = {"enable_gqa": shape.kv < shape.heads, "is_causal": shape.mask == "causal"}
        if shape.mask == "padding":
            kernel["attn_mask"] = self.mask
        qkv = F.linear(self.x, fused.qkv_proj.weight, fused.qkv_proj.bias)
        qkv = qkv.view(shape.batch, shape.n, -1, self.d_k).transpose(1, 2)
        Q, K, V = qkv.split((shape.heads, shape.kv, shape.kv), dim=1)
        heads = F.scaled_dot_product_attention(Q, K, V, **kernel)
        heads = heads.transpose(1, 2).reshape(shape.batch, shape.n, shape.d_model)
        return F.linear(heads, fused.out_proj.weight, fused.out_proj.bias)

    def ours(self) -> Tensor:
        """The course's fast layer."""
        return self.fused(self.x, self.mask if self.shape.mask == "padding" else None)

    def repeated(self) -> Tensor:
        """Shared heads, copied for every query head."""
        shape, fused = self.shape, self.fused
        qkv = fused.qkv_proj(self.x).unflatten(-1, (-1, self.d_k)).transpose(1, 2)
        Q, K, V = qkv.split((shape.heads, shape.kv, shape.kv), dim=1)
        K, V = (y.repeat_interleave(shape.heads // shape.kv, dim=1) for y in (K, V))
        heads = F.scaled_dot_product_attention(Q, K, V, is_causal=shape.mask == "causal")
        return fused.out_proj(heads.transpose(1, 2).flatten(2))

    def module(self) -> Tensor:
        """PyTorch's layer, without weights."""
        return self._module(need_weights=False)

    def module_with_weights(self) -> Tensor:
        """PyTorch's layer as it is called by default: it returns weights, averaged over the heads."""
        return self._module(need_weights=True)

    def _module(self, need_weights: bool) -> Tensor:
        options: dict[str, Any] = {"need_weights": need_weights}
        if self.shape.mask == "causal":
            options |= {"attn_mask": ~self.causal, "is_causal": True}
        if self.shape.mask == "padding":
            options |= {"key_padding_mask": ~self.keep}
        return self.builtin(self.x, self.x, self.x, **options)[0]

    def packed(self) -> Tensor:
        """As nanoGPT does it: packed projection, three views, fused kernel."""
        shape, fused = self.shape, self.fused
        Q, K, V = fused.qkv_proj(self.x).split(shape.d_model, dim=2)
        K = K.view(shape.batch, shape.n, shape.heads, -1).transpose(1, 2)
        Q = Q.view(shape.batch, shape.n, shape.heads, -1).transpose(1, 2)
        V = V.view(shape.batch, shape.n, shape.heads, -1).transpose(1, 2)
        mask = self.mask if shape.mask == "padding" else None
        heads = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask, is_causal=shape.mask == "causal")
        return fused.out_proj(heads.transpose(1, 2).contiguous().view(shape.batch, shape.n, shape.d_model))

    def loop(self) -> Tensor:
        """Head by head, as the formula is written."""
        layer, mask = self.readable, self.mask
        if mask is not None and mask.dim() == 4:
            mask = mask[:, 0]  # (batch, 1, n)
        outputs = []
        for head in range(self.shape.heads):
            own = slice(head * self.d_k, (head + 1) * self.d_k)
            linears = (layer.q_proj, layer.k_proj, layer.v_proj)
            Q, K, V = (F.linear(self.x, linear.weight[own], linear.bias[own]) for linear in linears)
            outputs.append(attention(Q, K, V, mask)[0])  # (batch, n, d_k)
        return layer.out_proj(torch.cat(outputs, dim=-1))


def training_step(run: Callable[[], Tensor], peers: Peers) -> Callable[[], Tensor]:
    """Forward and backward, gradients of input and parameters included."""
    parameters = [p for layer in (peers.fused, peers.readable, peers.builtin) for p in layer.parameters()]

    def step() -> Tensor:
        for p in parameters:
            p.grad = None
        peers.x.grad = None
        y = run()
        y.backward(torch.ones_like(y))
        return y

    peers.x.requires_grad_()
    return step


def check(contestants: dict[str, Callable[[], Tensor]], peers: Peers, dtype: torch.dtype) -> None:
    """Every contestant gives the floor's result, at real tokens."""
    tolerance = {torch.float32: 1e-4, torch.bfloat16: 3e-2}[dtype]
    if DEVICE == "cuda":
        tolerance = max(tolerance, 1e-3)
    want = contestants["floor"]()
    for name, run in contestants.items():
        wrong = ((run() - want) * peers.keep[..., None]).abs().max().item()
        if not wrong <= tolerance:
            raise SystemExit(f"{name} is not equal to the floor at {peers.shape}: off by {wrong:g}")


def wait() -> None:
    """Until the device has done its work."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def compare(
    shape: Shape, dtype: torch.dtype, training: bool, compiled: bool, seconds: float
) -> dict[str, Any]:
    """Medians of all contestants at one shape."""
    peers = Peers(shape, dtype, training)
    contestants = peers.all()
    if compiled:
        contestants = {
            name: torch.compile(run) for name, run in contestants.items() if name != "loop over heads"
        }
    with torch.inference_mode(not training):
        check(contestants, peers, dtype)
        if training:
            contestants = {name: training_step(run, peers) for name, run in contestants.items()}
        taken = interleaved(contestants, seconds, wait)
    medians = {name: summary(times) for name, times in taken.items()}
    return {
        "shape": str(shape),
        "dtype": str(dtype).removeprefix("torch."),
        "pass": "training step" if training else "forward",
        "compiled": compiled,
        "contestants": medians,
        "ratio_to_floor": {n: m["median_ms"] / medians["floor"]["median_ms"] for n, m in medians.items()},
    }


def decode(shape: Shape, dtype: torch.dtype, seconds: float) -> dict[str, Any]:
    """One more token after n - 1 that are remembered."""
    torch.manual_seed(0)
    options: dict[str, Any] = {"device": DEVICE, "dtype": dtype}
    fused = FusedAttention(shape.d_model, shape.heads, shape.kv, causal=True).to(**options).eval()
    cache = KVCache(shape.batch, shape.n, shape.kv, fused.d_k, **options)
    past = torch.randn(shape.batch, shape.n - 1, shape.d_model, **options)
    x = torch.randn(shape.batch, 1, shape.d_model, **options)

    def project() -> tuple[Tensor, Tensor, Tensor]:
        qkv = F.linear(x, fused.qkv_proj.weight, fused.qkv_proj.bias)
        qkv = qkv.view(shape.batch, 1, -1, fused.d_k).transpose(1, 2)
        return qkv.split((shape.heads, shape.kv, shape.kv), dim=1)

    def attend(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
        heads = F.scaled_dot_product_attention(Q, K, V, enable_gqa=shape.kv < shape.heads)
        heads = heads.transpose(1, 2).reshape(shape.batch, 1, shape.d_model)
        return F.linear(heads, fused.out_proj.weight, fused.out_proj.bias)

    def floor() -> Tensor:
        Q, K, V = project()
        cache.K[:, :, -1:], cache.V[:, :, -1:] = K, V
        return attend(Q, cache.K, cache.V)

    def ours() -> Tensor:
        cache.length = shape.n - 1
        return fused(x, cache=cache)

    def grown() -> Tensor:
        Q, K, V = project()
        K = torch.cat([cache.K[:, :, :-1], K], dim=2)
        V = torch.cat([cache.V[:, :, :-1], V], dim=2)
        return attend(Q, K, V)

    def whole() -> Tensor:
        return fused(torch.cat([past, x], dim=1))[:, -1:]

    contestants = {"floor": floor, "fused": ours, "cache grown by concatenation": grown, "no cache": whole}
    with torch.inference_mode():
        fused(past, cache=cache)
        want = whole()
        for name, run in contestants.items():
            wrong = (run() - want).abs().max().item()
            if not wrong <= (1e-3 if dtype == torch.float32 else 3e-2):
                raise SystemExit(f"{name} is not equal to the whole sequence at {shape}: off by {wrong:g}")
        taken = interleaved(contestants, seconds, wait)
    medians = {name: summary(times) for name, times in taken.items()}
    return {
        "shape": str(shape),
        "dtype": str(dtype).removeprefix("torch."),
        "pass": "decode step",
        "compiled": False,
        "contestants": medians,
        "ratio_to_floor": {n: m["median_ms"] / medians["floor"]["median_ms"] for n, m in medians.items()},
    }


def cases(full: bool) -> Iterator[tuple[Shape, torch.dtype, bool, bool]]:
    """What is compared: shape, type, training or not, compiled or not."""
    shapes = FULL if full else QUICK
    if DEVICE == "cpu":
        yield from ((shape, torch.float32, training, False) for training in (False, True) for shape in shapes)
        return
    for dtype in (torch.float32, torch.bfloat16):
        yield from ((shape, dtype, training, False) for training in (False, True) for shape in shapes)
        yield shapes[1], dtype, False, True  # to compile takes long


def show(result: dict[str, Any]) -> None:
    """One comparison as lines of a table."""
    compiled = ", compiled" if result["compiled"] else ""
    print(f"\n{result['shape']}  {result['pass']}, {result['dtype']}{compiled}")
    for name, times in result["contestants"].items():
        print(f"  {name:32} {times['median_ms']:10.3f} ms {result['ratio_to_floor'][name]:7.2f}", flush=True)


def geometric_mean(numbers: list[float]) -> float:
    """The mean of ratios."""
    return math.exp(statistics.fmean(map(math.log, numbers)))


def main() -> None:
    """Measure, print, store."""
    parser = command_line(__doc__)
    parser.add_argument("--full", action="store_true", help="all shapes")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each comparison (default: 2)")
    arguments = parser.parse_args()
    compared = []
    for shape, dtype, training, compiled in cases(arguments.full):
        compared.append(compare(shape, dtype, training, compiled, arguments.seconds))
        show(compared[-1])
    for shape in (
        Shape(1, 1024, 512, 8),
        Shape(8, 1024, 512, 8, kv_heads=2),
        Shape(1, 4096, 1024, 16, kv_heads=4),
    ):
        for dtype in (torch.float32,) if DEVICE == "cpu" else (torch.float32, torch.bfloat16):
            compared.append(decode(shape, dtype, arguments.seconds))
            show(compared[-1])
    ratios = [result["ratio_to_floor"]["fused"] for result in compared]
    print(f"\nfused against the floor: geometric mean {geometric_mean(ratios):.3f}, worst {max(ratios):.3f}")
    against = [
        result["contestants"]["fused"]["median_ms"]
        / result["contestants"]["nn.MultiheadAttention"]["median_ms"]
        for result in compared
        if "nn.MultiheadAttention" in result["contestants"]
    ]
    mean, worst = geometric_mean(against), max(against)
    print(f"fused against nn.MultiheadAttention: geometric mean {mean:.3f}, worst {worst:.3f}")
    results = {
        "compared": compared,
        "fused_to_floor": {"geometric_mean": geometric_mean(ratios), "worst": max(ratios)},
        "fused_to_module": {"geometric_mean": geometric_mean(against), "worst": max(against)},
    }
    print("\nwritten:", write(arguments.results, f"layers-{DEVICE}", results))


if __name__ == "__main__":
    main()
