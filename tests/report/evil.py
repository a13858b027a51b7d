"""A result with a hostile name at every place where there is one."""

import json

import numpy as np
import pandas as pd

#: what ends elements, attributes, scripts, comments, templates and lines, turns text round, or is no text
NAME = (
    "</script><script>window.evil=1</script><img src=x onerror=window.evil=1>\"' onmouseover=window.evil=1 "
    "autofocus onfocus=window.evil=1 <!--<script> ]]></title></style></svg><svg onload=window.evil=1>"
    "<plaintext><textarea>{{ 7*7 }}{% for x in y %}{# {0} %s \u2028\u202e\u2066\0\x1b[2J\r\n\t\udcff"
)


def renamed(result):
    """Names, labels, texts, attributes and what variables are, each with `NAME` behind it."""
    if isinstance(result, pd.DataFrame):
        return result.assign(**{name: result[name].map(_named) for name in result})
    found = result.copy()
    for name in list(found.variables):
        values = found[name]
        if values.dtype.kind in "OUT":
            items = np.array([*map(_named, values.values.ravel().tolist()), None], object)[:-1]
            assign = found.assign_coords if name in found.coords else found.assign
            found = assign({name: (values.dims, items.reshape(values.shape), dict(values.attrs))})
        found[name].attrs = {key: _named(value) for key, value in found[name].attrs.items()}
    found.attrs = {name: _told(value) for name, value in found.attrs.items()}
    found.attrs |= {NAME: NAME, "study": NAME, "model": NAME}
    return found


def _named(value):
    return value + NAME if isinstance(value, str) and value else value


def _told(value):
    """An attribute; JSON stays JSON, with the name in it."""
    try:
        inside = json.loads(value)
    except (TypeError, ValueError):
        return _named(value)
    if isinstance(inside, dict):
        return json.dumps({_named(key): _named(item) for key, item in inside.items()})
    return json.dumps([*map(_named, inside)]) if isinstance(inside, list) else value
