"""What goes wrong, by kind: every error names the thing, the place and the way out."""


class ScaleshiftError(Exception):
    """Base of all errors that scaleshift raises on purpose."""


class DataError(ScaleshiftError, ValueError):
    """The values are not what the method can use: NaN rows, unknown markers, empty classes."""


class ChunkError(ScaleshiftError, ValueError):
    """The chunks of an array do not fit the rows they belong to."""


class SchemaError(ScaleshiftError, ValueError):
    """A store or a saved model does not have the layout it should have."""


class NotIdentifiableError(ScaleshiftError, ValueError):
    """The data cannot tell the classes apart, so no proportion can be given."""


class ClusterError(ScaleshiftError, RuntimeError):
    """A cluster cannot be started, does not answer, or was lost, and the job with it."""


class DoesNotFitError(ScaleshiftError, MemoryError):
    """A job needs more memory than there is, and this is known before it runs."""


def one_line(error: object) -> str:
    r"""What an error of another library says, on one line and not at length; its kind where it says nothing.

    Examples
    --------
    >>> one_line(ValueError("two\nlines")), one_line(TimeoutError())
    ('two lines', 'TimeoutError')
    """
    return " ".join(str(error).split())[:500] or type(error).__name__
