"""The recipes for Kubernetes against the schemas of dask-kubernetes and Kubernetes: every field is known."""

import copy
import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker
from recipes import RECIPES

from scaleshift.cli import main

jsonschema = pytest.importorskip("jsonschema")
if find_spec("dask_kubernetes") is None:
    pytest.skip('pip install "scaleshift[kubernetes]"', allow_module_level=True)
models = pytest.importorskip("kubernetes.client.models")

FOLDER = RECIPES / "kubernetes"
PACKAGE = Path(find_spec("dask_kubernetes").submodule_search_locations[0])
SCHEMAS = PACKAGE / "operator" / "deployment" / "helm" / "dask-kubernetes-operator" / "crds"
OF_DASK = {"cluster-cpu": "daskcluster", "cluster-gpu": "daskcluster", "autoscaler": "daskautoscaler"}
OF_KUBERNETES = {"job": "V1Job", "network-policy": "V1NetworkPolicy"}


def recipe(name):
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text())


def closed(schema):
    """The same schema, but that objects have no other fields than it names."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: closed(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict):
        schema.setdefault("additionalProperties", False)
    return schema


def schema_of(kind):
    whole = yaml.safe_load((SCHEMAS / f"{kind}.yaml").read_text())
    schema = closed(whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {}}
    return schema


def check(tree, kind):
    jsonschema.Draft202012Validator(schema_of(kind)).validate(tree)


def unknown_fields(tree, model, place=""):
    """Fields that a model of Kubernetes does not have, to any depth."""
    listed = re.fullmatch(r"[Ll]ist\[(\w+)\]", model)
    if listed:
        return [
            found for i, part in enumerate(tree) for found in unknown_fields(part, listed[1], f"{place}[{i}]")
        ]
    made = getattr(models, model, None)
    if made is None:  # text, a number, a mapping of names of one's own
        return []
    fields = {written: made.openapi_types[name] for name, written in made.attribute_map.items()}
    found = [f"{place}.{name}" for name in tree if name not in fields]
    for name in set(tree) & set(fields):
        found += unknown_fields(tree[name], fields[name], f"{place}.{name}")
    return found


def pods():
    for name in ("cluster-cpu", "cluster-gpu"):
        spec = recipe(name)["spec"]
        yield from ((f"{name} {part}", spec[part]["spec"]) for part in ("scheduler", "worker"))
    yield "job", recipe("job")["spec"]["template"]["spec"]


PODS = list(pods())


def test_every_recipe_is_checked_here():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {*OF_DASK, *OF_KUBERNETES}


@pytest.mark.parametrize("name", OF_DASK)
def test_a_recipe_fits_the_schema_of_the_operator(name):
    check(recipe(name), OF_DASK[name])


@pytest.mark.parametrize("name", OF_KUBERNETES)
def test_a_recipe_has_only_fields_that_kubernetes_knows(name):
    assert unknown_fields(recipe(name), OF_KUBERNETES[name]) == []


MISSPELT = {
    "replica": ("worker", "replicas"),
    "imag": ("worker", "spec", "containers", 0, "image"),
    "allowPrivilegeEscalations": (
        "scheduler",
        "spec",
        "containers",
        0,
        "securityContext",
        "allowPrivilegeEscalation",
    ),
    "runAsNonroot": ("worker", "spec", "securityContext", "runAsNonRoot"),
}


@pytest.mark.parametrize("wrong", MISSPELT)
def test_a_misspelt_field_is_refused(wrong):
    tree = recipe("cluster-cpu")
    *path, right = MISSPELT[wrong]
    part = tree["spec"]
    for step in path:
        part = part[step]
    part[wrong] = part.pop(right)
    with pytest.raises(jsonschema.ValidationError, match=wrong):
        check(tree, "daskcluster")


def test_a_misspelt_field_of_a_job_is_found():
    tree = copy.deepcopy(recipe("job"))
    container = tree["spec"]["template"]["spec"]["containers"][0]
    container["resource"] = container.pop("resources")
    assert unknown_fields(tree, "V1Job") == [".spec.template.spec.containers[0].resource"]


@pytest.mark.parametrize(("place", "pod"), PODS, ids=[place for place, _ in PODS])
def test_a_pod_has_no_privileges_and_a_limit_of_memory(place, pod):
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    assert {"tls", "dask", "scratch"} <= volumes


@pytest.mark.parametrize(("place", "pod"), PODS, ids=[place for place, _ in PODS])
def test_a_pod_talks_by_tls(place, pod):
    environment = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
    role = {"scheduler": "SCHEDULER", "worker": "WORKER", "job": "CLIENT"}[place.split()[-1]]
    assert environment["DASK_CONFIG"] == "/dask/scaleshift.yaml"  # requires encryption
    assert environment["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] == "/tls/ca.pem"
    assert environment[f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT"] == "/tls/node.pem"
    addresses = re.findall(r"(\w+)://", str(pod))
    assert set(addresses) <= {"tls"}


@pytest.mark.parametrize("name", ["cluster-cpu", "cluster-gpu"])
def test_the_operator_finds_the_scheduler_and_its_workers_by_name(name):
    tree = recipe(name)
    cluster, service = tree["metadata"]["name"], tree["spec"]["scheduler"]["service"]
    assert service["selector"] == {"dask.org/cluster-name": cluster, "dask.org/component": "scheduler"}
    assert {port["name"] for port in service["ports"]} == {"tcp-comm", "http-dashboard"}
    (worker,) = tree["spec"]["worker"]["spec"]["containers"]
    environment = {one["name"]: one["value"] for one in worker["env"]}
    assert environment["DASK_SCHEDULER_ADDRESS"] == f"tls://{cluster}-scheduler:8786"
    arguments = worker["args"]
    assert arguments[arguments.index("--name") + 1] == "$(DASK_WORKER_NAME)"


def test_autoscaler_and_job_name_the_cluster():
    cluster = recipe("cluster-cpu")["metadata"]["name"]
    assert recipe("autoscaler")["spec"]["cluster"] == cluster
    (container,) = recipe("job")["spec"]["template"]["spec"]["containers"]
    assert f"tls://{cluster}-scheduler:8786" in container["args"]


def test_the_scheduler_answers_the_questions_that_the_operator_asks():
    (container,) = recipe("cluster-cpu")["spec"]["scheduler"]["spec"]["containers"]
    environment = {one["name"]: one["value"] for one in container["env"]}
    names = yaml.safe_load(environment["DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES"])
    routes = [route[0] for name in names for route in importlib.import_module(name).routes]
    assert {"/health", "/api/v1/adaptive_target", "/api/v1/retire_workers"} <= set(routes)


def test_the_command_lines_are_those_of_dask_and_scaleshift():
    spec = recipe("cluster-cpu")["spec"]
    commands = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
    for name, command in commands.items():
        (container,) = spec[name]["spec"]["containers"]
        dask, verb, *arguments = container["args"]
        assert (dask, verb) == ("dask", name)
        given = command.make_context(verb, arguments).params
        assert given["protocol"] == "tls"
        assert not given["preload_argv"]  # where Dask puts options that it does not know
    (container,) = recipe("job")["spec"]["template"]["spec"]["containers"]
    name, verb, *arguments = container["args"]
    assert name == "scaleshift"
    given = main.commands[verb].make_context(verb, arguments).params
    assert given["resume"]
    assert given["scheduler"] == "tls://scaleshift-scheduler:8786"
