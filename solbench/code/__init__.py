"""What a candidate becomes on a card that is not here: code objects, and what they show without being run.

Compiling: ``recording`` (host code run once on tensors without data), ``compiling``, ``hip``, ``targets``.

Evidence, with the standard library alone: ``msgpack`` and ``kernels`` (over ``device.elf``) read what a code object
declares, ``assembly`` the compiler's text, ``machine_code`` and ``opcodes`` the instructions themselves; ``agreement``
compares text and code. ``loops`` finds loops, ``scalars`` and ``trips`` how often they run, ``gathers`` which loads
depend on data. ``mix``, ``occupancy`` and ``findings`` derive from them (``examined`` holds it all); ``evidence`` is
the whole, ``launchable`` whether a call with such kernels would launch.

In a release: ``artifacts`` and ``section``; ``solutions`` compiles one candidate of any language, ``recorded`` keeps
what HIP became where a clang is, ``rederive`` compares what is kept with what the compilers here make. ``plain_file``
reads what a candidate's process has left.
"""
