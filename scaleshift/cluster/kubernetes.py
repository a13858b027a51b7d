"""Workers that are pods, by the operator of dask-kubernetes.

The text that it would send is tested; it was never run on a real cluster.
"""

from __future__ import annotations

from typing import Any

import dask

from scaleshift.cluster.existing import compare
from scaleshift.cluster.options import check
from scaleshift.cluster.owner import Owner
from scaleshift.cluster.settings import ONE_BLAS_THREAD, as_environment, chosen
from scaleshift.errors import ClusterError, one_line

INSTALL = 'pip install "scaleshift[kubernetes]"'


def kubernetes(options: dict[str, Any]) -> Owner:
    """Pods of a Kubernetes cluster on which Dask's operator runs.

    `KubeCluster` talks plain TCP: to the scheduler's service from inside of the Kubernetes cluster, or from
    outside by a port that the API server forwards, which is TLS up to there. Where pods of others share the
    network, give ``custom_cluster_spec`` with certificates, and connect to its ``tls://`` address.

    Parameters
    ----------
    options : dict
        Go on to KubeCluster, but for ``allowed_failures``. ``image`` must hold scaleshift, in the version
        that is here. ``env`` is added to our own.

    Returns
    -------
    Owner

    Raises
    ------
    ClusterError
        Without the package or an image, or where the cluster refuses.
    """
    try:
        import kr8s  # what dask-kubernetes talks by
        from dask_kubernetes.operator import KubeCluster
    except ImportError as error:
        raise ClusterError(f"'kubernetes' needs dask-kubernetes ({one_line(error)}): {INSTALL}") from error
    check("kubernetes", options, [KubeCluster])
    options = prepared(options)
    try:
        kr8s.api()  # a KubeCluster that finds no credentials fails again as Python ends
        client = Owner(KubeCluster(**options))
    except Exception as error:  # of httpx, of kr8s, of its own
        raise ClusterError(f"Kubernetes: {type(error).__name__}: {one_line(error)}") from error
    try:
        compare(client, "the pods")
    except BaseException:
        client.close()
        raise
    return client


def prepared(options: dict[str, Any]) -> dict[str, Any]:
    """What goes to KubeCluster, with our settings in the environment of its containers.

    Examples
    --------
    >>> prepared({"image": "registry/scaleshift:1"})["env"]["OMP_NUM_THREADS"]
    '1'
    """
    options = dict(options)
    settings = chosen(options)
    if "custom_cluster_spec" in options:
        return options
    if "image" not in options:
        raise ClusterError("'kubernetes' needs image=, one that holds scaleshift as it is here")
    ours, env = {**ONE_BLAS_THREAD, **as_environment(settings)}, options.get("env") or {}
    if isinstance(env, dict):
        env = {**ours, **env}
    else:  # a list, as Kubernetes writes it
        named = {entry["name"] for entry in env}
        env = [*({"name": k, "value": v} for k, v in ours.items() if k not in named), *env]
    n_workers = dask.config.get("kubernetes.count.start", 0) or 1
    return {"n_workers": n_workers, "quiet": True, **options, "env": env}
