"""Evaluation of one solution: three processes that do not trust each other equally (DESIGN §6, docs/evaluation.md).

The orchestrator imports no PyTorch. ``evaluation`` is the way in, ``measure`` that for a corpus.

- what runs where: ``session``, ``workers`` (its ends), ``processes``, ``frames``; ``referee``, ``zygote``, ``worker``
- one sample: ``sampling`` plays rounds, ``turns`` lets a worker make a call, ``verdict`` does so without a time;
  ``arena``, ``memory``, ``compute``, ``staging``, ``precision`` are the memory and the device under it
- time: ``timing`` holds the limits, ``batches``, ``stopping``, ``controls``, ``protocols``; ``witnesses`` and ``watch``
  say what a reader should know, ``profiler`` and ``profiling`` what took the time
- confinement: ``sandbox``, ``namespaces``, ``freeze``; ``held`` is a card that a session owns
- languages: ``support``, ``build``, ``compilers``; ``triton_interpreter``, ``narrow_floats``, ``device_library``
- sets of records: ``recording``, ``jobs``, ``cards`` (several at once), ``merging``; ``identity`` names what was run
"""
