"""DVC remotes as untrusted transport: pull, push, and the question whether everything is there.

DVC names objects by MD5 and believes much of what it is told. So objects are asked for, fetched and sent here, each
checked against what git states (sizes and BLAKE3 in ``store/*.json``, MD5 in ``dvc.lock``), into and out of DVC's own
cache; DVC then only checks out what was found right.
"""
