# attack M10: NaN makes every comparison false
# expect: INCORRECT_NUMERICAL
def run(x, scale):
    return x * float("nan")
