import torch


def run(x, residual, router_logits, w_gate_up, w_down, shared_gate_up, shared_down):
    largest, chosen = router_logits.max(dim=1, keepdim=True)
    shared = expert(x.float(), shared_gate_up, shared_down)
    scaled = x.float() * torch.sigmoid(largest)
    routed = expert(scaled, w_gate_up[0], w_down[0])
    for index in range(1, w_down.shape[0]):
        routed = torch.where(chosen == index, expert(scaled, w_gate_up[index], w_down[index]), routed)
    return (residual.float() + shared + routed).bfloat16()


def expert(x, gate_up, down):
    gate, up = (x @ gate_up.float().T).chunk(2, dim=1)
    return (torch.nn.functional.silu(gate) * up) @ down.float().T
