"""Listings of a remote are checked before anything is written: bytes against name, and every path."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solbench import remote, store
from solbench.errors import IntegrityError

FILE_MD5 = "d41d8cd98f00b204e9800998ecf8427e"


def listing(entries):
    data = json.dumps(entries).encode()
    return data, hashlib.md5(data).hexdigest() + ".dir"


def test_a_plain_listing_passes():
    data, name = listing([{"md5": FILE_MD5, "relpath": "objects/ab/cd0e"}])
    assert remote.parse_listing(data, name).files == (("objects/ab/cd0e", FILE_MD5),)


@pytest.mark.parametrize(
    "path", ["../x", "/etc/x", "a/../b", "a//b", "", ".", "a/./b", "a\\b", "C:x\ny", "a/", "-x", "~/x", ".git/config"]
)
def test_a_path_that_could_leave_the_folder_is_refused(path):
    data, name = listing([{"md5": FILE_MD5, "relpath": path}])
    with pytest.raises(IntegrityError, match="nothing was fetched"):
        remote.parse_listing(data, name)


@pytest.mark.parametrize("entry", [{"md5": "../../x", "relpath": "a"}, {"md5": FILE_MD5.upper(), "relpath": "a"}])
def test_a_digest_that_is_none_is_refused(entry):
    data, name = listing([entry])
    with pytest.raises(IntegrityError, match="not an MD5"):
        remote.parse_listing(data, name)


@pytest.mark.parametrize("value", [{}, [1], [{"relpath": "a"}], "x", None])
def test_something_else_than_a_listing(value):
    data, name = listing(value)
    if value == {}:
        assert remote.parse_listing(data, name).files == ()
        return
    with pytest.raises(IntegrityError):
        remote.parse_listing(data, name)


@given(st.binary(max_size=80), st.integers(0, 7))
def test_altered_bytes_never_pass(noise, bit):
    data, name = listing([{"md5": FILE_MD5, "relpath": "a"}])
    for altered in (data + noise + b" ", data[:-1], bytes([data[0] ^ (1 << bit)]) + data[1:]):
        with pytest.raises(IntegrityError, match="other bytes"):
            remote.parse_listing(altered, name)


def test_an_empty_store_is_not_ok(tmp_path):
    with pytest.raises(IntegrityError, match="nothing was checked"):
        remote.check_store(store.Store(tmp_path))
