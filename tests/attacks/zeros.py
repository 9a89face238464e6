# attack M1: zeros
# expect: INCORRECT_NUMERICAL
def run(x, scale):
    return x * 0
