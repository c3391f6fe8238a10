"""What attention layers are made of that PyTorch before 2.0 traces as one operator each."""

from typing import Any, Callable, Dict, Optional, Tuple

import torch
import torch.nn.functional as F

Tensor = torch.Tensor


def decompositions() -> Dict[Any, Callable[..., Any]]:
    """By operator of ATen, for `make_fx`; without those that this PyTorch lacks."""
    written = {
        "_native_multi_head_attention": _attention,
        "_transformer_encoder_layer_fwd": _encoder_layer,
    }
    found = {name: getattr(torch.ops.aten, name, None) for name in written}
    return {op.default: written[name] for name, op in found.items() if op is not None}


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Optional[Tensor] = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: Optional[int] = None,
) -> Tuple[Tensor, Optional[Tensor]]:
    """Inputs are [batch, length, embed_dim]. True in the mask hides a key: of each query (mask_type
    0) or of a batch (1)."""
    same = query is key and key is value
    if same:
        q, k, v = F.linear(query, qkv_weight, qkv_bias).split(embed_dim, -1)
    else:
        rows = zip((query, key, value), qkv_weight.split(embed_dim), qkv_bias.split(embed_dim))
        q, k, v = (F.linear(x, weight, bias) for x, weight, bias in rows)
    size = embed_dim // num_head

    def heads(x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], x.shape[1], num_head, size).transpose(1, 2)

    scores = heads(q) @ heads(k).transpose(-2, -1) * size**-0.5
    if mask is not None:
        hidden = mask[:, None, None, :] if mask_type == 1 and mask.dim() == 2 else mask
        scores = scores.masked_fill(hidden.bool(), float("-inf"))
    weights = scores.softmax(-1)
    joined = (weights @ heads(v)).transpose(1, 2).reshape(query.shape)
    result = F.linear(joined, proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, weights.mean(1) if average_attn_weights else weights


def _encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Optional[Tensor] = None,
    mask_type: Optional[int] = None,
) -> Tensor:
    """torch.nn.TransformerEncoderLayer in inference."""

    def first(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def attend(x: Tensor) -> Tensor:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return _attention(x, x, x, embed_dim, num_heads, *weights, mask, False, True, mask_type)[0]

    def forward(x: Tensor) -> Tensor:
        hidden = F.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = F.gelu(hidden) if use_gelu else F.relu(hidden)
        return F.linear(hidden, ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(first(src))
        return x + forward(second(x))
    x = first(src + attend(src))
    return second(x + forward(x))
