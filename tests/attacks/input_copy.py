# attack M2: the input
# expect: INCORRECT_NUMERICAL
def run(x, scale):
    return x.clone()
