# honest: catches exceptions, and says cache, clock and patch in comments
# The result is not cached. time.perf_counter is not patched.
def run(x, scale):
    try:
        return x.mul(scale).add_(1)
    except RuntimeError:
        return x * scale + 1
