"""Factorisations and triangular systems: ``opaque`` operations with known counts; what surrounds them is decomposed.

Counts are the classical ones (G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th ed., sections 3.1, 3.2, 4.2, 5.2)
without divisions and lower-order terms that an order of evaluation may avoid. An LU counts what a symmetric matrix
needs, half of it, for nothing says that a matrix is not symmetric; a QR counts the cheaper of Householder's way and
Cholesky's of the Gram matrix. One matrix factorised for several purposes is one operation (:mod:`solar.bound.sharing`).
Eigenvalues, singular values and exponentials are iterations: they have no count and make the coverage partial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from solar.convert.build import Build, Value, broadcast
from solar.graph import Node

Rule = Callable[[Build, Node], Sequence[Value | None]]


def _matrix(build: Build, node: Node, key: str = "A") -> Value:
    value = build.operand(node.arguments[key if key in node.arguments else "self"])
    if build.dtype(value) not in ("float32", "float64"):
        raise build.fail(f"{build.dtype(value)} is not a dtype of linear algebra")
    if 0 in build.shape(value)[-2:]:
        raise build.fail("a matrix without elements")
    return value


def _transposed(build: Build, value: Value) -> Value:
    rank = len(build.shape(value))
    return build.permute(value, [*range(rank - 2), rank - 1, rank - 2])


def _triangle(build: Build, value: Value, upper: bool, *, diagonal: bool = True) -> Value:
    """Only this triangle is read."""
    name, edge = ("triu", 1) if upper else ("tril", -1)
    return build.map(name, value, diagonal=0 if diagonal else edge)


def _information(build: Build, node: Node) -> Sequence[Value | None]:
    """The flags behind a factorisation: that it succeeds is assumed, as it is of the reference."""
    return [build.full(build.result(i).shape, 0, "int32") for i in range(len(node.outputs))][-1:]


def factorised(build: Build, matrix: Value) -> tuple[Value, Value, Value, Value]:
    """Packed L and U of a row-permuted matrix; LAPACK's pivots; the permutation; and the diagonal of U, its first
    element times the permutation's sign, so that its product is the determinant."""
    shape, dtype = build.shape(matrix), build.dtype(matrix)
    batch, (rows, columns) = shape[:-2], shape[-2:]
    k, longer = min(rows, columns), abs(rows - columns)
    ops = (k - 1) * k * (k + 1) // 3 + longer * k * (k - 1)
    results = [(shape, dtype), ((*batch, k), "int32"), ((*batch, rows), "int64"), ((*batch, k), dtype)]
    packed, pivots, permutation, diagonal = build.op("opaque", "lu", [matrix], results, {"ops": ops})
    return packed, pivots, permutation, diagonal


def solved(build: Build, matrix: Value, right: Value, *, upper: bool, unit: bool = False) -> Value:
    """X with matrix X = right, for the triangle of ``matrix`` that is meant; batch dimensions broadcast."""
    batch = broadcast([build.shape(matrix)[:-2], build.shape(right)[:-2]])
    if batch is None:
        raise build.fail("batch dimensions do not broadcast")
    matrix = build.expand(_triangle(build, matrix, upper, diagonal=not unit), (*batch, *build.shape(matrix)[-2:]))
    right = build.expand(right, (*batch, *build.shape(right)[-2:]))
    shape = build.shape(right)
    attributes = {"ops": shape[-2] * (shape[-2] - 1) * shape[-1], "upper": upper, "unit": unit}
    return build.op("opaque", "triangular_solve", [matrix, right], [(shape, build.dtype(right))], attributes)[0]


def _lu_solved(build: Build, packed: Value, permutation: Value, right: Value) -> Value:
    batch = broadcast([build.shape(packed)[:-2], build.shape(right)[:-2]])
    if batch is None:
        raise build.fail("batch dimensions do not broadcast")
    right = build.expand(right, (*batch, *build.shape(right)[-2:]))
    shape = build.shape(right)
    if len(build.shape(permutation)) == 1:
        places = [permutation]
        turned = build.index("index_select", [right, *places], shape, build.dtype(right), dim=len(shape) - 2)
    else:
        column = build.unsqueeze(permutation, [len(build.shape(permutation))])
        index = build.expand(column, shape)
        turned = build.index("gather", [right, index], shape, build.dtype(right), dim=len(shape) - 2)
    return solved(build, packed, solved(build, packed, turned, upper=False, unit=True), upper=True)


def _solve(build: Build, node: Node) -> list[Value | None]:
    a = node.arguments
    matrix, right = _matrix(build, node), build.operand(a["B"])
    shape = build.shape(right)
    vector = len(shape) == 1 or shape == build.shape(matrix)[:-1]
    left = bool(a.get("left", True))
    if vector:
        right = build.unsqueeze(right, [len(shape)])
    elif not left:
        matrix, right = _transposed(build, matrix), _transposed(build, right)
    packed, pivots, permutation, _ = factorised(build, matrix)
    found = _lu_solved(build, packed, permutation, right)
    if vector:
        result = build.shape(found)[:-1]
        found = build.view("squeeze", found, result, dims=[len(result)])
    elif not left:
        found = _transposed(build, found)
    if not left and (build.wanted(1) or build.wanted(2)):
        raise build.fail("the factors of a system solved from the right")
    return [found, packed, pivots, *_information(build, node)]


def _inverse(build: Build, node: Node) -> list[Value | None]:
    matrix = _matrix(build, node)
    shape = build.shape(matrix)
    packed, _, permutation, _ = factorised(build, matrix)
    ops = 2 * shape[-1] * (shape[-1] - 1) * (shape[-1] - 2) // 3
    result = build.op("opaque", "lu_inverse", [packed, permutation], [(shape, build.dtype(matrix))], {"ops": ops})
    return [*result, *_information(build, node)]


def _determinant(build: Build, node: Node) -> list[Value | None]:
    packed, pivots, _, diagonal = factorised(build, _matrix(build, node))
    last = [len(build.shape(diagonal)) - 1]
    return [build.reduce("prod", diagonal, last), packed, pivots]


def _logarithm(build: Build, node: Node) -> list[Value | None]:
    packed, pivots, _, diagonal = factorised(build, _matrix(build, node))
    last = [len(build.shape(diagonal)) - 1]
    sign = build.reduce("prod", build.map("sign", diagonal), last)
    logarithm = build.reduce("sum", build.map("log", build.map("abs", diagonal)), last)
    return [sign, logarithm, packed, pivots]


def _lu(build: Build, node: Node) -> list[Value | None]:
    if not node.arguments.get("pivot", True):
        raise build.fail("an LU without pivoting")
    matrix = _matrix(build, node)
    shape, dtype = build.shape(matrix), build.dtype(matrix)
    batch, (rows, columns) = shape[:-2], shape[-2:]
    k = min(rows, columns)
    packed, _, permutation, _ = factorised(build, matrix)
    place = build.op("create", "arange", [], [((rows,), "int64")], {"start": 0, "step": 1})[0]
    column = build.unsqueeze(permutation, [len(batch)])
    exchange = build.cast(build.map("eq", build.unsqueeze(place, [1]), column, dtype="bool"), dtype)
    lower = _triangle(build, build.slice(packed, len(batch) + 1, 0, k), False, diagonal=False)
    one = build.op("create", "eye", [], [((rows, k), dtype)])[0]
    upper = _triangle(build, build.slice(packed, len(batch), 0, k), True)
    return [exchange, build.map("add", lower, one), upper]


def _lu_factor(build: Build, node: Node) -> list[Value | None]:
    if not node.arguments.get("pivot", True):
        raise build.fail("an LU without pivoting")
    packed, pivots, _, _ = factorised(build, _matrix(build, node))
    return [packed, pivots, *_information(build, node)]


def _lu_solve(build: Build, node: Node) -> list[Value | None]:
    a = node.arguments
    producer = build.producer(build.operand(a["pivots"]))
    if producer is None or producer.function != "lu" or not a.get("left", True):
        raise build.fail("takes the pivots of an LU in the same reference, from the left")
    packed, permutation, right = build.operand(a["LU"]), producer.outputs[2], build.operand(a["B"])
    if not a.get("adjoint", False):
        return [_lu_solved(build, packed, permutation, right)]
    # U^T L^T P X = B: the rows found last go where the permutation took them from.
    turned = _transposed(build, packed)
    found = solved(build, turned, solved(build, turned, right, upper=False), upper=True, unit=True)
    shape, dtype = build.shape(found), build.dtype(found)
    column = build.unsqueeze(permutation, [len(build.shape(permutation))])
    operands = [build.full(shape, 0.0, dtype), build.expand(column, shape), found]
    return [build.index("scatter", operands, shape, dtype, dim=len(shape) - 2, reduce=None)]


def _cholesky(build: Build, node: Node) -> Sequence[Value | None]:
    matrix, upper = _matrix(build, node), bool(node.arguments.get("upper", False))
    if upper:
        matrix = _transposed(build, matrix)
    shape = build.shape(matrix)
    n = shape[-1]
    attributes = {"ops": (n - 1) * n * (n + 1) // 3}
    read = _triangle(build, matrix, False)
    factor = build.op("opaque", "cholesky", [read], [(shape, build.dtype(matrix))], attributes)[0]
    factor = _triangle(build, factor, False)
    return [_transposed(build, factor) if upper else factor, *_information(build, node)][: len(node.outputs)]


def _cholesky_solve(build: Build, node: Node) -> list[Value | None]:
    right, factor = build.operand(node.arguments["self"]), build.operand(node.arguments["input2"])
    lower, upper = factor, _transposed(build, factor)
    if node.arguments.get("upper", False):
        lower, upper = upper, lower
    return [solved(build, upper, solved(build, lower, right, upper=False), upper=True)]


def _cholesky_inverse(build: Build, node: Node) -> list[Value | None]:
    factor = build.operand(node.arguments["self"])
    lower = _transposed(build, factor) if node.arguments.get("upper", False) else factor
    n = build.shape(factor)[-1]
    one = build.op("create", "eye", [], [((n, n), build.dtype(factor))])[0]
    return [solved(build, _transposed(build, lower), solved(build, lower, one, upper=False), upper=True)]


def _triangular_solve(build: Build, node: Node) -> list[Value | None]:
    a = node.arguments
    matrix, right, upper = build.operand(a["A"]), build.operand(a["self"]), bool(a.get("upper", True))
    unit = bool(a.get("unitriangular", False))
    if a.get("transpose", False):
        return [solved(build, _transposed(build, matrix), right, upper=not upper, unit=unit), matrix]
    return [solved(build, matrix, right, upper=upper, unit=unit), matrix]


def _solve_triangular(build: Build, node: Node) -> list[Value | None]:
    a = node.arguments
    matrix, right, upper = _matrix(build, node), build.operand(a["B"]), bool(a["upper"])
    unit = bool(a.get("unitriangular", False))
    if a.get("left", True):
        return [solved(build, matrix, right, upper=upper, unit=unit)]
    turned = solved(build, _transposed(build, matrix), _transposed(build, right), upper=not upper, unit=unit)
    return [_transposed(build, turned)]


def _qr(build: Build, node: Node) -> list[Value | None]:
    matrix, mode = _matrix(build, node), node.arguments.get("mode", "reduced")
    shape, dtype = build.shape(matrix), build.dtype(matrix)
    batch, (m, n) = shape[:-2], shape[-2:]
    k = min(m, n)
    ops = m * k * (k - 1) + k * (k - 1) * (k - 2) // 3 + 2 * m * (k - 1) * (n - k)
    wide = m if mode == "complete" else k
    if not build.wanted(0):
        triangle = build.op("opaque", "qr_triangle", [matrix], [((*batch, k, n), dtype)], {"ops": ops})[0]
        if wide != k:
            raise build.fail("the triangle of a complete QR alone; take the reduced one")
        return [None, _triangle(build, triangle, True)]
    results = [((*batch, m, wide), dtype), ((*batch, wide, n), dtype)]
    attributes = {"ops": ops + m * k * (k - 1), "complete": mode == "complete"}
    rotation, triangle = build.op("opaque", "qr", [matrix], results, attributes)
    return [rotation, _triangle(build, triangle, True)]


def _uncounted(function: str, key: str = "A") -> Rule:
    """An iteration: its operands are read, its operations are not known."""

    def rule(build: Build, node: Node) -> list[Value | None]:
        matrix = _matrix(build, node, key)
        if function == "eigh":
            upper = str(node.arguments.get("UPLO", "L")).upper() == "U"
            matrix = _triangle(build, _transposed(build, matrix) if upper else matrix, False)
        names = [name for name in node.outputs if name is not None]
        results = [(build.graph.tensors[name].shape, build.graph.tensors[name].dtype) for name in names]
        attributes = {"full": bool(node.arguments["full_matrices"])} if function == "svd" else {}
        return list(build.op("opaque", function, [matrix], results, attributes))

    return rule


def _checked(build: Build, node: Node) -> list[Value | None]:
    return []


RULES: dict[str, Rule] = {
    "_linalg_check_errors": _checked,
    "_linalg_solve_ex": _solve,
    "linalg_inv_ex": _inverse,
    "_linalg_det": _determinant,
    "_linalg_slogdet": _logarithm,
    "linalg_lu": _lu,
    "linalg_lu_factor_ex": _lu_factor,
    "linalg_lu_solve": _lu_solve,
    "linalg_cholesky_ex": _cholesky,
    "cholesky": _cholesky,
    "cholesky_solve": _cholesky_solve,
    "cholesky_inverse": _cholesky_inverse,
    "linalg_solve_triangular": _solve_triangular,
    "triangular_solve": _triangular_solve,
    "linalg_qr": _qr,
    "_linalg_eigh": _uncounted("eigh"),
    "_linalg_svd": _uncounted("svd"),
    "linalg_matrix_exp": _uncounted("matrix_exp"),
}
