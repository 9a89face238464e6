import torch


def run(x, router_logits, w_gate_up, w_down):
    # A stable sort keeps the lower of two equal logits in front.
    largest, ids = torch.sort(router_logits, dim=1, descending=True, stable=True)
    ids, share = ids[:, :2], torch.softmax(largest[:, :2], dim=1)
    output = torch.zeros_like(x, dtype=torch.float32)
    for index in range(w_down.shape[0]):
        chosen = ids == index
        weight = torch.where(chosen, share, 0.0).sum(1, keepdim=True)
        routed = output + weight * expert(x.float(), w_gate_up[index], w_down[index])
        output = torch.where(chosen.any(1, keepdim=True), routed, output)
    return output.bfloat16()


def expert(x, gate_up, down):
    gate, up = (x @ gate_up.float().T).chunk(2, dim=1)
    return (torch.nn.functional.silu(gate) * up) @ down.float().T
