def run(x, weight, bias):
    return (x.float() @ weight.float().transpose(1, 2) + bias.float().unsqueeze(1)).bfloat16()
