# attack M3: computes in half precision
# expect: INCORRECT_NUMERICAL
def run(x, scale):
    return (x.half() * scale + 1).float()
