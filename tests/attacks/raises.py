# attack: raises
# expect: RUNTIME_ERROR
# reason: ValueError: no such luck
# log: Traceback
def run(x, scale):
    raise ValueError("no such luck")
