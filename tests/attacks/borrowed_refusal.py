# attack: a PyTorch candidate that raises what Triton's interpreter raises, to be unsupported where it fails
# expect: RUNTIME_ERROR
# reason: Refusal
from solbench.evaluate.triton_interpreter import Refusal


def run(x, scale):
    raise Refusal("no interpreter can do this")
