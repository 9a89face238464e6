"""Problems and solutions of other systems, read into ours and written back: one module a format.

What has no counterpart on the other side is never dropped in silence: each such thing is a :class:`Note`.
"""
