import math

import torch
import torch.nn.functional as F


def run(
    x,
    ln1_w,
    ln1_b,
    attn_c_attn_w,
    attn_c_attn_b,
    attn_c_proj_w,
    attn_c_proj_b,
    attn_bias,
    n_head,
    ln2_w,
    ln2_b,
    mlp_cfc_w,
    mlp_cfc_b,
    mlp_cproj_w,
    mlp_cproj_b,
    n_embd,
):
    # Pre-norm block: x + attention(norm(x)), then + mlp(norm(.)).
    batch, length, _ = x.shape
    normed = F.layer_norm(x, (n_embd,), ln1_w, ln1_b, eps=1e-5)

    # The projection holds queries, keys and values one after another, each split into heads of consecutive columns.
    query, key, value = F.linear(normed, attn_c_attn_w, attn_c_attn_b).split(n_embd, dim=2)
    heads = (batch, length, n_head, n_embd // n_head)
    query, key, value = (part.view(heads).transpose(1, 2) for part in (query, key, value))

    # Causal attention: the mask is 1 on and below the diagonal.
    score = torch.matmul(query, key.transpose(2, 3)) * (1.0 / math.sqrt(n_embd // n_head))
    score = score.masked_fill(attn_bias[:, :, :length, :length] == 0, float("-inf"))
    mixed = torch.matmul(torch.softmax(score, dim=3), value)
    mixed = mixed.transpose(1, 2).reshape(batch, length, n_embd)
    x = x + F.linear(mixed, attn_c_proj_w, attn_c_proj_b)

    # GELU in its tanh form.
    normed = F.layer_norm(x, (n_embd,), ln2_w, ln2_b, eps=1e-5)
    hidden = F.gelu(F.linear(normed, mlp_cfc_w, mlp_cfc_b), approximate="tanh")
    return x + F.linear(hidden, mlp_cproj_w, mlp_cproj_b)
