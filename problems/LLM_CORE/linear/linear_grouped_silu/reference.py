import torch


def run(x, weight, group_offsets):
    # Rows of a group stand together; the last offset not above a row starts its group, also where groups are empty.
    row = torch.arange(x.shape[0], dtype=group_offsets.dtype, device=x.device)
    group = (torch.bucketize(row, group_offsets, right=True) - 1).unsqueeze(1)
    output = expert(x, weight[0])
    for index in range(1, weight.shape[0]):
        output = torch.where(group == index, expert(x, weight[index]), output)
    return output


def expert(x, weight):
    return torch.nn.functional.silu(x.float() @ weight.float().T).bfloat16()


def custom_inputs(axes, device):
    # Any sizes; the second of three and more groups is empty.
    rows, groups = axes["R"], axes["G"]
    cuts = torch.randint(0, rows + 1, (groups - 1,)).sort().values
    offsets = torch.cat((torch.tensor([0]), cuts, torch.tensor([rows]))).int()
    if groups >= 3:
        offsets[1] = offsets[2]
    return {"group_offsets": offsets}
