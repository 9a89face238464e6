from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solbench.errors import InputError
from solbench.model.solution import Solution, SourceFile

FIELDS: dict[str, Any] = {
    "name": "fast",
    "definition": "pair_sum",
    "author": "someone",
    "spec": {"languages": ["cpp"], "entry_point": "kernel.cpp::run", "binding": "c"},
    "sources": [{"path": "kernel.cpp", "content": "int x;"}, {"path": "inc/tile.h", "content": "int y;"}],
}


def spec(**changes: Any) -> dict[str, Any]:
    return {**FIELDS["spec"], **changes}


def test_loads() -> None:
    solution = Solution.load(FIELDS, "s")
    assert Solution.load(solution.as_dict(), "again") == solution
    assert solution.spec.target_hardware == ("cpu",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sources": []}, "s: sources: "),
        ({"sources": [{"path": "kernel.cpp", "content": ""}]}, "s: sources.0.content: "),
        ({"sources": [*FIELDS["sources"], {"path": "Kernel.cpp", "content": "1"}]}, "two files have the same path"),
        ({"sources": FIELDS["sources"][1:]}, "no source 'kernel.cpp'"),
        ({"spec": spec(entry_point="kernel.cpp")}, "entry_point: must be 'file::function'"),
        ({"spec": spec(entry_point="kernel.py::run")}, "does not fit the languages cpp"),
        ({"spec": spec(languages=["cpp", "pytorch"])}, "do not mix"),
        ({"spec": spec(languages=["rust"])}, "s: spec.languages.0: "),
        ({"spec": spec(languages=[])}, "s: spec.languages: "),
        ({"spec": spec(flags=["-O3"])}, "s: spec.flags: "),
        ({"author": ""}, "s: author: "),
    ],
)
def test_rules(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Solution.load({**FIELDS, **changes}, "s")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "../up.py", "a/../b.py", "./a.py", "a//b.py", "a/", "", "a\\b.py", "-x.py", "~/a.py",
        ".hidden.py", "a b.py", "sitecustomize.py", "pkg/usercustomize.py", "hook.pth", "conftest.py", "a\n.py",
        "a\0.py", "ä.py",
    ],
)  # fmt: skip
def test_paths_refused(path: str) -> None:
    with pytest.raises(InputError):
        SourceFile.load({"path": path, "content": "x"}, "s")


@given(st.text(max_size=30))
def test_an_accepted_path_stays_below_its_folder(path: str) -> None:
    try:
        accepted = SourceFile.load({"path": path, "content": "x"}, "s").path
    except InputError:
        return
    assert accepted == path
    assert not accepted.startswith("/") and ".." not in accepted.split("/") and accepted.isascii()
