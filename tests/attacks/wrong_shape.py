# attack M12: the right numbers in another shape
# expect: INCORRECT_SHAPE
def run(x, scale):
    return (x * scale + 1).reshape(-1, 1)
