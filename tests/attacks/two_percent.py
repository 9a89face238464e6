# attack M6: every fiftieth number is nothing like it
# expect: INCORRECT_NUMERICAL
def run(x, scale):
    y = x * scale + 1
    y[::50] = 0
    return y
