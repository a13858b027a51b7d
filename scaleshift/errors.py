"""What goes wrong, by kind: every error names the thing, the place and the way out."""


class ScaleshiftError(Exception):
    """Base of all errors that scaleshift raises on purpose.

    Examples
    --------
    >>> import scaleshift as ss
    >>> try:
    ...     ss.open_cells("nowhere.zarr")
    ... except ss.ScaleshiftError as error:  # whatever its kind; a bug is none of them
    ...     print(type(error).__name__)
    SchemaError
    """


class DataError(ScaleshiftError, ValueError):
    """The values are not what the method can use: NaN rows, unknown markers, empty classes.

    Examples
    --------
    >>> import scaleshift as ss
    >>> try:
    ...     ss.DFM().fit([[0.0], [float("nan")]], ["B", "T"])
    ... except ss.DataError as error:
    ...     print(str(error).partition(". ")[0])
    NaN or infinite values by column: column 0: 1; first rows 1
    """


class ChunkError(ScaleshiftError, ValueError):
    """The chunks of an array do not fit the rows they belong to.

    Examples
    --------
    >>> import scaleshift as ss
    >>> try:
    ...     ss.DFM().fit([[0.0], [1.0], [2.0]], ["B", "T"])
    ... except ss.ChunkError as error:
    ...     print(error)
    label has 2 values, X has 3 rows: pass one a row
    """


class SchemaError(ScaleshiftError, ValueError):
    """A store or a saved model does not have the layout it should have.

    Examples
    --------
    >>> import scaleshift as ss
    >>> try:
    ...     ss.load("nowhere")
    ... except ss.SchemaError as error:
    ...     print(str(error).rpartition("/")[2])
    nowhere does not exist: expected a folder that the save method of a scaleshift model wrote
    """


class NotIdentifiableError(ScaleshiftError, ValueError):
    """The data cannot tell the classes apart, so no proportion can be given.

    Quantifiers answer nevertheless, with a flag that names the classes: this is for those who want an error.

    Examples
    --------
    >>> import numpy as np
    >>> import scaleshift as ss
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> model = ss.DFM(bandwidth=1.0, random_state=0).fit(x, ["CD4 T", "CD8 T"] * 100)  # a marker is missing
    >>> try:
    ...     if model.confounded_:
    ...         raise ss.NotIdentifiableError(f"not told apart: {model.confounded_}")
    ... except ss.NotIdentifiableError as error:
    ...     print(error)
    not told apart: [['CD4 T', 'CD8 T']]
    """


class ClusterError(ScaleshiftError, RuntimeError):
    """A cluster cannot be started, does not answer, or was lost, and the job with it.

    Examples
    --------
    >>> import scaleshift as ss
    >>> try:
    ...     ss.cluster.connect("slrum")
    ... except ss.ClusterError as error:
    ...     print(str(error)[:59])
    no kind of cluster is called 'slrum': did you mean 'slurm'?
    """


class DoesNotFitError(ScaleshiftError, MemoryError):
    """A job needs more memory than there is, and this is known before it runs: says what would fit.

    Examples
    --------
    >>> import dask.array as da
    >>> import scaleshift as ss
    >>> X, y = da.zeros((1_000_000, 1_000_000), chunks=-1), da.arange(1_000_000) % 2
    >>> try:
    ...     ss.HDx().fit(X, y)
    ... except ss.DoesNotFitError as error:
    ...     print(str(error).partition(", would")[0])
    1 block of 1,000,000 rows, 8 TB each
    """


def one_line(error: object) -> str:
    r"""What an error of another library says, on one line and not at length; its kind where it says nothing.

    Examples
    --------
    >>> one_line(ValueError("two\nlines")), one_line(TimeoutError())
    ('two lines', 'TimeoutError')
    """
    return " ".join(str(error).split())[:500] or type(error).__name__
