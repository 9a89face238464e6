# attack H26: does not want to be read
# expect: PASSED
import base64

exec(base64.b64decode(b"ZGVmIHJ1bih4LCBzY2FsZSk6CiAgICByZXR1cm4geCAqIHNjYWxlICsgMQo="))  # noqa: S102
