def run(x, weight):
    return (x.float() @ weight.float()).bfloat16()
