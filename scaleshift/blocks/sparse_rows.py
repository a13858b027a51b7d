"""What is different about sparse rows?  Blocks of scipy.sparse CSR arrays, where others are numpy arrays.

Estimators that say they take sparse rows get them as they are; all others refuse them. Whether the blocks of
a Dask array are sparse, its meta says.
"""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.sizeof import sizeof
from scipy import sparse

from scaleshift.errors import DataError
from scaleshift.kernels.reference import library
from scaleshift.kernels.sparse import canonical


def is_sparse(x: Any) -> bool:
    """Whether an array, or the blocks of a Dask array, are of scipy.sparse.

    Examples
    --------
    >>> is_sparse(sparse.csr_array((2, 3))), is_sparse(np.ones((2, 3)))
    (True, False)
    """
    return sparse.issparse(getattr(x, "_meta", x))


def refuse_kind(X: Any, *, sparse_too: bool) -> None:
    """Raise DataError for sparse arrays that the caller does not take: all of them, or those not of scipy.

    Examples
    --------
    >>> refuse_kind(sparse.csr_array((2, 3)), sparse_too=True)
    """
    blocks = getattr(X, "_meta", X)  # what the blocks of a Dask array are
    if library(blocks) == "sparse":
        call = f"{'tocsr' if sparse_too else 'todense'}()"
        way_out = f"X.map_blocks(lambda block: block.{call})" if isinstance(X, da.Array) else f"X.{call}"
        raise DataError(
            f"X is sparse ({type(blocks).__name__} of the package sparse): convert it first, with {way_out}"
        )
    if library(blocks) == "anndata" and hasattr(blocks, "to_memory"):
        raise DataError(
            f"X is sparse and on disk ({type(blocks).__name__}): read it first, with X.to_memory(), or "
            "in blocks, with anndata.experimental.read_elem_lazy"
        )
    if hasattr(blocks, "toarray") and not isinstance(blocks, np.ndarray):  # views of AnnData have it too
        if sparse_too and is_sparse(X):
            return
        raise DataError(f"X is sparse ({type(X).__name__}): make it dense first, with X.toarray()")


def refuse_block(x: Any) -> None:
    """Raise DataError for a sparse block of rows that are said to be dense."""
    if is_sparse(x):
        raise DataError(
            f"a block of X is sparse ({type(x).__name__}), and the array's meta says that it is dense: make "
            "it so with X.map_blocks(lambda block: block.toarray()); for a method that takes sparse rows, "
            "call X.map_blocks(scipy.sparse.csr_array, meta=scipy.sparse.csr_array((0, 0)))"
        )


def csr_rows(X: Any) -> Any:
    """A sparse array as CSR of float32 or float64, or a Dask array with such blocks: lazy, block by block.

    Parameters
    ----------
    X : scipy.sparse array or matrix, or Dask array of such
        Of any format; integers and bools become the narrowest floats that hold them.

    Examples
    --------
    >>> csr_rows(sparse.coo_array(np.eye(2, dtype=bool))).dtype
    dtype('float32')
    """
    if not isinstance(X, da.Array):
        return csr_block(X)
    dtype = _floats(X.dtype)
    # At once, also where chunks are merged later: dask joins CSR, and cannot cut or join every format.
    return da.map_blocks(csr_block, X, dtype=dtype, meta=sparse.csr_array((0, 0), dtype=dtype))


def csr_block(x: Any) -> sparse.csr_array:
    """One block as CSR of floats; dense blocks of an array that is sparse as a whole may be among them."""
    if not isinstance(x, np.ndarray) and not sparse.issparse(x):
        raise DataError(
            f"a block of X is a {type(x).__module__}.{type(x).__name__}, and the array's meta says that it "
            "is of scipy.sparse: convert it with X.map_blocks(lambda block: block.tocsr())"
        )
    if x.dtype == np.float16:  # which scipy refuses
        x = x.astype(np.float32)
    rows = canonical(x)
    return rows.astype(_floats(rows.dtype), copy=False)


def finite(x: sparse.csr_array) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """Rows that are not finite, emptied and marked; how many stored values of each column are not.

    Examples
    --------
    >>> x, valid, by_column = finite(sparse.csr_array([[1.0, np.nan], [2.0, 0.0]]))
    >>> x.toarray().tolist(), valid.tolist(), by_column.tolist()
    ([[0.0, 0.0], [2.0, 0.0]], [False, True], [0.0, 1.0])
    """
    x = canonical(x)  # columns may have been picked in another order
    n, d = x.shape
    if x.indices.size and not (x.indices.min() >= 0 and x.indices.max() < d):
        raise DataError(
            f"sparse rows hold column {x.indices.max()} of {d}: they are damaged, X.check_format() tells more"
        )
    with np.errstate(all="ignore"):
        if np.isfinite(x.data.sum()):
            return x, np.ones(n, bool), np.zeros(d)
    bad = np.flatnonzero(~np.isfinite(x.data))
    valid = np.ones(n, bool)
    valid[np.searchsorted(x.indptr, bad, "right") - 1] = False
    by_column = np.bincount(x.indices[bad], minlength=d).astype(np.float64)
    lengths = np.diff(x.indptr)
    kept = np.repeat(valid, lengths)
    indptr = np.concatenate([x.indptr[:1], np.cumsum(np.where(valid, lengths, 0), dtype=x.indptr.dtype)])
    return sparse.csr_array((x.data[kept], x.indices[kept], indptr), shape=x.shape), valid, by_column


def nbytes(x: Any) -> int:
    """Bytes of a block in memory.

    Examples
    --------
    >>> nbytes(np.ones((2, 3))), nbytes(sparse.csr_array(np.eye(2)))
    (48, 36)
    """
    return x.data.nbytes + x.indices.nbytes + x.indptr.nbytes if is_sparse(x) else x.nbytes


def _floats(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)


@sizeof.register(sparse.sparray)
def _sizeof(x: Any) -> int:
    """Bytes of a sparse array, by which workers account for kept blocks: dask knows those of matrices."""
    return sum(sizeof(part) for part in vars(x).values())
