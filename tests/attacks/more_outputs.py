# attack M13: another number of outputs
# expect: INCORRECT_SHAPE
def run(x, scale):
    y = x * scale + 1
    return y, y
