"""How is a package imported that only an extra brings?"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any

from scaleshift.errors import DataError


def optional(module: str, extra: str, what: str) -> Any:
    """Import a module of an optional package.

    Parameters
    ----------
    module : str
    extra : str
        Of scaleshift, that brings the package.
    what : str
        What needs it, for the error.

    Raises
    ------
    DataError
        If it cannot be imported; says how to get it.

    Examples
    --------
    >>> optional("math", "none", "counting").floor(1.5)
    1
    """
    try:
        if sys.modules.get(module) is not None:  # the filters of warnings are not changed once it is there
            return importlib.import_module(module)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own affair
            return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise DataError(
            f'{what} needs {package}, which cannot be imported ({error}): pip install "scaleshift[{extra}]"'
        ) from error
