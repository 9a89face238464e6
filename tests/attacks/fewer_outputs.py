# attack M13: no outputs at all
# expect: INCORRECT_SHAPE
def run(x, scale):
    return ()
