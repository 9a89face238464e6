import math

import torch

YARN = 0.1 * math.log(40) + 1


def run(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv):
    queries, keys = q_nope.shape[2], c_kv.shape[1]
    latent = c_kv.float()
    k_nope = torch.einsum("hnc,btc->bhtn", w_uk.float(), latent)
    scores = torch.einsum("bhsn,bhtn->bhst", q_nope.float(), k_nope)
    scores = scores + torch.einsum("bhsr,btr->bhst", q_rope.float(), k_rope.float())
    # Query and key carry the factor of YaRN once each.
    scores = scores * (YARN**2 / math.sqrt(q_nope.shape[3] + q_rope.shape[3]))

    position = torch.arange(queries, device=latent.device).unsqueeze(1) + (keys - queries)
    later = torch.arange(keys, device=latent.device) > position
    probability = torch.softmax(scores.masked_fill(later, -torch.inf), dim=-1)
    value = torch.einsum("hvc,btc->bhtv", w_uv.float(), latent)
    return torch.einsum("bhst,bhtv->bhsv", probability, value).bfloat16().contiguous()
