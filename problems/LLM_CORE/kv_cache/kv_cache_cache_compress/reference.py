import torch

EPS = 1e-6


def run(kv, gate, position_bias, norm_weight):
    entry, channels = position_bias.shape[0], norm_weight.shape[0]
    whole = kv.shape[1] // entry * entry  # tokens behind the last whole entry are ignored
    value = kv[:, :whole].float().unflatten(1, (-1, entry))
    logit = gate[:, :whole].float().unflatten(1, (-1, entry)) + position_bias

    # The first entry has no tokens before it.
    before = torch.nn.functional.pad(logit[:, :-1, :, :channels], (0, 0, 0, 0, 1, 0), value=-torch.inf)
    share = torch.softmax(torch.cat((before, logit[..., channels:]), dim=2), dim=2)
    before = torch.nn.functional.pad(value[:, :-1, :, :channels], (0, 0, 0, 0, 1, 0))
    mixed = (share * torch.cat((before, value[..., channels:]), dim=2)).sum(2)

    scale = torch.rsqrt(mixed.square().mean(-1, keepdim=True) + EPS)
    return (mixed * scale * norm_weight.float()).bfloat16()
