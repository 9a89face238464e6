# attack: raises while it is loaded
# expect: RUNTIME_ERROR
# reason: ModuleNotFoundError
import a_module_that_is_not_there  # noqa: F401


def run(x, scale):
    return x * scale
