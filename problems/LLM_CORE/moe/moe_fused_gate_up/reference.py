import torch

BETA, LINEAR_BETA = 4.0, 25.0


def run(x, group_offsets, w_gate_up):
    # Rows of a group stand together; the last offset not above a row starts its group, also where groups are empty.
    row = torch.arange(x.shape[0], dtype=group_offsets.dtype, device=x.device)
    group = (torch.bucketize(row, group_offsets, right=True) - 1).unsqueeze(1)
    output = expert(x, w_gate_up[0])
    for index in range(1, w_gate_up.shape[0]):
        output = torch.where(group == index, expert(x, w_gate_up[index]), output)
    return output


def expert(x, gate_up):
    gate, up = (x.float() @ gate_up.float().T).chunk(2, dim=1)
    bounded = BETA * torch.tanh(gate / BETA) * torch.sigmoid(gate)
    return (bounded * LINEAR_BETA * torch.tanh(up / LINEAR_BETA)).bfloat16()


def custom_inputs(axes, device):
    # Any sizes; the second of three and more groups is empty.
    rows, groups = axes["R"], axes["EL"]
    cuts = torch.randint(0, rows + 1, (groups - 1,)).sort().values
    offsets = torch.cat((torch.tensor([0]), cuts, torch.tensor([rows]))).int()
    if groups >= 3:
        offsets[1] = offsets[2]
    return {"group_offsets": offsets}
