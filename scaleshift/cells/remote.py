"""Why does a store at a URL not answer? Said with the way out, before anybody calls the study damaged."""

from __future__ import annotations

from scaleshift.errors import SchemaError

WAYS_OUT = {
    "s3": "check the network and the credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE "
    "or ~/.aws, for workers too; AWS_ENDPOINT_URL names a server that is not Amazon's",
}
ELSE = "check the address, the network and the permissions"
INSTALL = {"s3": ': pip install "scaleshift[s3]"'}


def scheme(location: str) -> str:
    """What stands before :// in a URL; "" for a path.

    Examples
    --------
    >>> scheme("s3://bucket/study.zarr"), scheme("/data/study.zarr")
    ('s3', '')
    """
    before, separator, _ = location.partition("://")
    return before if separator else ""


def refuse_unreachable(location: str, error: Exception) -> None:
    """Raise SchemaError where it is the way to a URL that fails, and not what is there.

    Parameters
    ----------
    location : str
        Path or URL of the store.
    error : Exception
        What came of opening it; zarr's own words for what it finds are ValueErrors.

    Raises
    ------
    SchemaError
        Where nobody answers at the URL, or not to us.

    Examples
    --------
    >>> refuse_unreachable("/data/study.zarr", OSError("damaged"))
    >>> try:
    ...     refuse_unreachable("ftp://host/study.zarr", OSError("no route"))
    ... except SchemaError as refused:
    ...     print(str(refused).partition(": ")[0])
    ftp://host/study.zarr cannot be reached (no route)
    """
    if scheme(location) and not isinstance(error, ValueError | FileNotFoundError | SchemaError):
        way_out = WAYS_OUT.get(scheme(location), ELSE)
        raise SchemaError(f"{location} cannot be reached ({error}): {way_out}") from error
