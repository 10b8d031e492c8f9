"""The low-rank bottleneck: which attention weights a narrow head can form.

A head of width d_k has scores X W_Q (X W_K)ᵀ / √d_k of rank at most d_k, and its weights are their softmax. Adding
a constant to a row of scores does not change the weights, so the scores that yield given positive weights P are
log P plus one free number for each row. The least rank among them is that of `centred_logs(P)`. If the rows of X
are linearly independent, a head realises P exactly if and only if its width is at least that rank, which is at
most n - 1.

Source: Bhojanapalli et al. 2020, Low-Rank Bottleneck in Multi-head Attention Models, theorem 1.
"""

import numpy as np
import torch
from torch import Tensor

from mha_lib.attention import softmax
from mha_lib.experiments.training import minimise, reproducible

Projections = tuple[np.ndarray, np.ndarray]  # W_Q and W_K, (d_model, d_k) each


def head_weights(X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray) -> np.ndarray:
    """Attention weights `(n, n)` of a head with projections `(d_model, d_k)` on the input X `(n, d_model)`."""
    return softmax((X @ W_Q) @ (X @ W_K).T / np.sqrt(W_Q.shape[1]))


def centred_logs(P: np.ndarray) -> np.ndarray:
    """log P with the mean of each row taken off: the scores of least rank whose softmax is P `(n, n)`."""
    logs = np.log(P)
    return logs - logs.mean(axis=-1, keepdims=True)  # (n, n)


def closest_head(P: np.ndarray, X: np.ndarray, d_k: int) -> Projections:
    """The head of width d_k whose centred log weights come closest to those of P, in the sum of squares.

    By Eckart and Young the best matrix of rank d_k is the truncated singular value decomposition. If d_k is at
    least the rank of `centred_logs(P)`, the head realises P exactly.

    Args:
        P: positive weights `(n, n)`, rows sum to 1.
        X: input `(n, d_model)` with linearly independent rows.
        d_k: width of the head, at most n.
    """
    left, singular_values, right = np.linalg.svd(centred_logs(P))
    root = np.sqrt(singular_values[:d_k]) * d_k**0.25  # (d_k,); the head divides by √d_k
    inverse = np.linalg.pinv(X)  # (d_model, n): X @ inverse is the identity
    return inverse @ (left[:, :d_k] * root), inverse @ (right[:d_k].T * root)  # (d_model, d_k) each


def pointing_head(targets: np.ndarray, X: np.ndarray, sharpness: float = 1000.0) -> Projections:
    """A head of width 2 whose query i puts nearly all of its weight on key targets[i].

    The keys lie on a circle, and each query points at its key: of all points on a circle, the one in the
    direction of the query has the largest dot product with it.

    Args:
        targets: for each query the key that it should see, `(n,)`.
        X: input `(n, d_model)` with linearly independent rows.
        sharpness: length of the queries. The weights beside the target go to 0 as it grows.
    """
    n = len(X)
    angles = 2 * np.pi * np.arange(n) / n
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # (n, 2)
    inverse = np.linalg.pinv(X)  # (d_model, n)
    return inverse @ (sharpness * circle[targets]), inverse @ circle  # (d_model, 2) each


def trained_head(P: np.ndarray, X: np.ndarray, d_k: int, steps: int = 300, seed: int = 0) -> Projections:
    """Fit a head of width d_k to the weights P by gradient descent on the cross-entropy, from a random start.

    Args:
        P: weights `(n, n)`, rows sum to 1.
        X: input `(n, d_model)`.
        d_k: width of the head.
        steps: number of Adam steps.
        seed: seed of the start.
    """

    def loss() -> Tensor:
        scores = (x @ W_Q) @ (x @ W_K).T / d_k**0.5  # (n, n)
        return -(target * scores.log_softmax(dim=-1)).sum(dim=-1).mean()

    with reproducible(seed):
        target, x = torch.tensor(P), torch.tensor(X)
        d_model = x.shape[1]
        W_Q, W_K = (torch.randn(d_model, d_k, dtype=x.dtype) / d_model**0.5 for _ in range(2))
        minimise(loss, [W_Q.requires_grad_(), W_K.requires_grad_()], steps, peak=0.1)
    return W_Q.detach().numpy(), W_K.detach().numpy()


def misplaced_weight(P: np.ndarray, Q: np.ndarray) -> float:
    """How much of a row's weight lies elsewhere, averaged over the rows: 0 if equal, 1 if disjoint."""
    return float(np.abs(P - Q).sum(axis=-1).mean() / 2)
