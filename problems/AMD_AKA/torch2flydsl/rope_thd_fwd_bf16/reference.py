import torch


def run(input, cu_seqlens, freqs):
    # Packed sequences: sequence i holds the tokens cu_seqlens[i] .. cu_seqlens[i + 1] - 1, and positions restart at
    # each. The last offset not above a token starts its sequence, also where sequences are empty.
    token = torch.arange(input.shape[0], dtype=cu_seqlens.dtype, device=input.device)
    sequence = torch.bucketize(token, cu_seqlens, right=True) - 1
    position = token - cu_seqlens[sequence]

    # freqs holds angles in radians, already rounded to bf16.
    angle = freqs[position, 0].float()
    cosine, sine = torch.cos(angle), torch.sin(angle)

    # Half-split pairs (j, j + D/2), fp32 inside, one rounding.
    first, second = input.float().chunk(2, dim=-1)
    rotated = torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)
    return rotated.bfloat16()
