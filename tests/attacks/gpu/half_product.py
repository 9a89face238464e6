# attack M3: takes products of float32 in bfloat16
# expect: INCORRECT_NUMERICAL
# problem: product
def run(a, b):
    return (a.bfloat16() @ b.bfloat16()).float()
