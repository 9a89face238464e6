import torch


def run(x, group_offsets, w_gate_up, w_down):
    # Rows of a group stand together; the last offset not above a row starts its group, also where groups are empty.
    row = torch.arange(x.shape[0], dtype=group_offsets.dtype, device=x.device)
    group = (torch.bucketize(row, group_offsets, right=True) - 1).unsqueeze(1)
    output = expert(x, w_gate_up[0], w_down[0])
    for index in range(1, w_down.shape[0]):
        output = torch.where(group == index, expert(x, w_gate_up[index], w_down[index]), output)
    return output


def expert(x, gate_up, down):
    gate, up = (x.float() @ gate_up.float().T).chunk(2, dim=1)
    return ((torch.nn.functional.silu(gate) * up) @ down.float().T).bfloat16()


def custom_inputs(axes, device):
    # Any sizes; the second of three and more groups is empty.
    rows, groups = axes["R"], axes["EL"]
    cuts = torch.randint(0, rows + 1, (groups - 1,)).sort().values
    offsets = torch.cat((torch.tensor([0]), cuts, torch.tensor([rows]))).int()
    if groups >= 3:
        offsets[1] = offsets[2]
    return {"group_offsets": offsets}
