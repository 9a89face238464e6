# attack: says in an exception what no UTF-8 can, which the record of a trace has to
# expect: RUNTIME_ERROR
# reason: RuntimeError: no such ?
# log: Traceback


def run(x, scale):
    raise RuntimeError("no such \ud800")
