# attack H17: never comes back
# expect: TIMEOUT
# reason: a call did not return within the time limit
# slow
def run(x, scale):
    while True:
        pass
