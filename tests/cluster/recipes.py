"""Where the recipes are, and their certificates, for tests."""

import shutil
import subprocess
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[2] / "cluster"


def make_certificates(folder, *names, days=()):
    """Certificates by our script, as a user makes them; skips where openssl is missing."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    script = RECIPES / "tls" / "make-certificates"
    return subprocess.run(
        [script, *days, folder, *(names or ("localhost", "127.0.0.1"))], capture_output=True, text=True
    )


def certificate_environment(folder):
    """What `. cluster/tls/environment` exports for these certificates."""
    shell = [
        "bash",
        "-euc",
        'SCALESHIFT_TLS=$1; . "$2"; env -0',
        "bash",
        folder,
        RECIPES / "tls" / "environment",
    ]
    said = subprocess.run(
        shell, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}
    ).stdout
    pairs = (line.split("=", 1) for line in said.split("\0") if line.startswith("DASK_"))
    return dict(pairs)
