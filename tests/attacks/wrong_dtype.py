# attack M12: the right numbers in another dtype
# expect: INCORRECT_DTYPE
def run(x, scale):
    return (x * scale + 1).double()
