"""What does a column of a study's cells hold, beside markers, samples and labels?  Read block by block."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import zarr

from scaleshift.blocks.block import Column
from scaleshift.blocks.labels import CODE, encode, suggestion
from scaleshift.cells.manifest import Manifest, locate, open_study
from scaleshift.cells.reader import BlockReader, CodeReader
from scaleshift.cells.schema import LABEL, SAMPLE
from scaleshift.cells.store import lazy, opened_rows
from scaleshift.errors import DataError

OBS = "obs"
