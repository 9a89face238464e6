# attack M11: an infinity, where a tolerance that grows with it would admit all
# expect: INCORRECT_NUMERICAL
def run(x, scale):
    return (x * scale + 1) * float("inf")
