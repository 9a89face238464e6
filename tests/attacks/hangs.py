# attack H17: never comes back
# expect: TIMEOUT
# slow
def run(x, scale):
    while True:
        pass
