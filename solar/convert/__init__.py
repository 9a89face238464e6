"""Stage 2: operator graph to the extended-einsum IR (:mod:`solar.einsum`).

The bound is computed from what this module writes, so every function and attribute is fixed here
(:mod:`solar.catalogue` lists them for the check of a program). Conventions:

* Dimensions are non-negative and count from 0. Extents of a result are its tensor's shape and are not repeated.
* ``scalars`` {"position": value}: constants among the arguments of a function, by 0-based argument position (a string
  key); tensor operands fill the other positions in order. ``x - 3`` is ``sub`` of [x] with {"1": 3}, ``3 - x`` is
  ``sub`` of [x] with {"0": 3}. A value is a number, a boolean, or one of the strings "inf", "-inf", "nan".
* All tensor operands of one op have one dtype (``where``, indices and masks apart): promotion is an explicit ``cast``.
  A function of 16-bit operands means: computed in float32, rounded once. Sums of 16-bit operands accumulate in float32.
  Compositions that PyTorch evaluates in float32 are written as cast to float32, functions, cast back.
* ``implicit: true`` marks a cast or a view that the conversion wrote and the reference did not ask for.
* ``source`` names the operator (``aten.mm.default`` ...) an op came from; the part of an op's name before the first dot
  names the node of the operator graph, so that ops of one composite share both. Neither changes what is computed.
* A function with several results lists them all in ``outputs``.
* What the reference does but no output needs is kept (demand analysis is the bound's work), except results of a
  composite that nothing reads. Mutation is gone: a write into a view is a ``copy`` (``slice_scatter`` ...) that makes a
  new value of its base; ``Program.aliases`` says which outputs are inputs written in place.
* ``Program.values`` holds known contents (row-major) of integer inputs, of integer tensors computed from nothing but
  those and constants where an ``index`` op reads them, and of such boolean tensors where a ``where`` does, up to 65,536
  elements each. A mask made of constants alone (``arange`` comparisons, ``tril``) has its ops instead.

einsum (attributes ``indices``, ``operands``, ``output``: see :mod:`solar.einsum`; MACs = product of all extents; an
affine form without terms reads one place for every index). Products are formed in the result's dtype where that is
wider than the operands'. The function is a hint only, the meaning is in the maps:
  ``matmul``           mm, bmm, linear, addmm (its bias is a ``map`` add), dot, mv, bilinear, einsum.
  ``convolution``      indices n, g (groups > 1 only), k, y0.., c, r0..: input position = stride*y + dilation*r -
                       padding; channel = g*Cg + c. The result of a grouped one is [n, g, k, y..], then a ``reshape``.
  ``convolution_weight``  gradient to a convolution's weight: sums over samples and positions.
  ``columns``          first half of a transposed convolution (or of a gradient to a convolution's input): columns
                       [n, (g,) c, y.., r..] = sum over k; MACs are exact. A ``fold`` adds the columns up.
  ``window_sum``       one operand: sum pooling; average pooling divides by a ``map``.

map (elementwise, operands broadcast right-aligned; one result). Arithmetic: add sub mul div floor_divide remainder fmod
  pow maximum minimum fmax fmin atan2 hypot (``div`` of integers truncates; a square is ``mul`` of a value by itself);
  unary: neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal erf erfc erfinv sin cos tan asin acos
  atan sinh cosh tanh asinh acosh atanh sigmoid relu floor ceil round trunc frac lgamma digamma; comparisons (result
  bool): eq ne lt le gt ge isnan isinf isposinf isneginf isfinite signbit; logic: logical_and logical_or logical_xor
  logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift; selection: where
  (condition, then, else), clamp (x, low, high, both scalars; an absent limit is absent, so the positions 1 and 2 tell
  which one is meant), copysign, nextafter, heaviside. ``tril``/``triu`` {diagonal}: keeps elements with column - row
  <= (>=) diagonal of the last two dimensions, zero elsewhere.

reduce {dims, keepdim}: sum prod amax amin any all argmax argmin (argmax and argmin: one dimension, first position).
  mean is sum, then ``div`` by a scalar. var is sums and maps (two passes). ``fold`` {spatial, stride, dilation,
  padding} beside ``dims`` (the last 2n): operand [..., y1..yn, r1..rn] with n = ``spatial``; result [..., h1..hn] with
  result[h] = sum of all (y, r) with h = stride*y + dilation*r - padding.

view (no arithmetic, no copy): permute{dims} (result dimension i is operand dimension dims[i]), reshape{} (row-major),
  slice{dim,start,stop,step} (0 <= start <= stop <= extent, step >= 1), select{dim,index} (index >= 0; drops the
  dimension), expand{} (right-aligned broadcast to the result's shape), squeeze{dims}, unsqueeze{dims} (positions in
  the result), diagonal{offset,dim1,dim2} (the diagonal becomes the last dimension), unfold{dim,size,step,dilation}
  (windows: ``dim`` counts windows, a new last dimension of extent ``size`` runs inside one), bitcast{} (same bits,
  another dtype; another width scales the last dimension), as_strided{stride,offset} (over the operand laid out
  row-major). A view that changes nothing is left out.

copy (data movement that must materialise): clone{}, cat{dim}, pad{before,after,value} (per dimension, >= 0),
  flip{dims}, roll{shifts,dims}, repeat{repeats} (one per result dimension; the operand's shape is filled up with ones
  on the left), slice_scatter{dim,start,stop,step}, select_scatter{dim,index}, diagonal_scatter{offset,dim1,dim2},
  as_strided_scatter{stride,offset} (operands: base, source; the result is the base with that view replaced).

index (operand 0 is the data): gather{dim} (data, index), index_select{dim} (data, index 1-d), embedding{} (table, index
  of any rank: result = index shape + row), index{dims} (data, one index tensor per listed dimension, broadcast
  together; the broadcast dimensions replace the listed ones where those are adjacent, else they come first),
  scatter{dim,reduce} (data, index, source; the source may be a scalar "2"; ``reduce``: null | "add" | "mul" | "amax"
  | "amin"), index_put{dims,accumulate} (data, indices..., values; values may be a scalar, at the last position),
  index_add{dim} (data, index, source), searchsorted{right} (sorted sequence, values). An index may be negative,
  counting from the end.

scan {dim}: cumsum cumprod logcumsumexp (one result), cummax cummin (values, positions).
sort: sort{dim,descending,stable} (values, positions), topk{dim,k,largest,sorted} (values, positions).
create: full{value}, empty{} (content without meaning), arange{start,step}, eye{}, constant{values} (row-major), random
  {distribution, parameters, seed, stream, drawn}: uniform, normal, integers, permutation, bernoulli, exponential,
  geometric, cauchy or log_normal numbers in dtype ``drawn``, row-major, from PyTorch's CPU generator of that seed; the
  draws of one stream follow each other in the order of the program.
cast: ``cast`` {} to the result's dtype: to a narrower float nearest-even, float to integer towards zero.
opaque {ops}: not decomposed. ``ops`` counts one matrix of the batch (all dimensions of operand 0 but the last two);
  without it the bound names the function as uncounted. cholesky{} (lower triangle: lower factor), lu{} (matrix: packed
  factors, LAPACK's pivots, permutation p with row i of L U = row p[i] of the matrix, diagonal of U whose first element
  takes the permutation's sign), triangular_solve{upper,unit} (triangle, right side), lu_inverse{} (packed,
  permutation), qr{complete} (Q, R), qr_triangle{} (R); not counted: eigh{} (lower triangle: values, vectors),
  svd{full} (U, values, V transposed), matrix_exp{}.
"""

from solar.convert.lowering import convert

__all__ = ["convert"]
