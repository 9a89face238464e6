import math

import torch

YARN = 0.1 * math.log(40) + 1


def run(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv):
    queries, keys = q_nope.shape[2], c_kv.shape[1]
    # Query and key carry the factor of YaRN once each.
    scale = YARN**2 / math.sqrt(q_nope.shape[3] + q_rope.shape[3])
    position = torch.arange(queries, device=c_kv.device).unsqueeze(1) + (keys - queries)
    later = torch.arange(keys, device=c_kv.device) > position

    q_nope, latent, w_uk, w_uv = q_nope.float(), c_kv.float(), w_uk.float(), w_uv.float()
    rotated = torch.einsum("bhsr,btr->bhst", q_rope.float(), k_rope.float())
    if queries == 1:
        # Decode: the query goes to the latent space, and no key or value is decompressed.
        query = torch.einsum("hnc,bhsn->bhsc", w_uk, q_nope)
        scores = torch.einsum("bhsc,btc->bhst", query, latent) + rotated
        probability = torch.softmax((scores * scale).masked_fill(later, -torch.inf), dim=-1)
        mixed = torch.einsum("bhst,btc->bhsc", probability, latent)
        return torch.einsum("hvc,bhsc->bhsv", w_uv, mixed).bfloat16().contiguous()
    key = torch.einsum("hnc,btc->bhtn", w_uk, latent)
    scores = torch.einsum("bhsn,bhtn->bhst", q_nope, key) + rotated
    probability = torch.softmax((scores * scale).masked_fill(later, -torch.inf), dim=-1)
    value = torch.einsum("hvc,btc->bhtv", w_uv, latent)
    return torch.einsum("bhst,bhtv->bhsv", probability, value).bfloat16().contiguous()
