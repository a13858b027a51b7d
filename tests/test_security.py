"""Nothing in the package runs text, unpickles, starts a shell or listens, but where it is named here."""

import ast
from pathlib import Path

import pytest

import scaleshift

ROOT = Path(scaleshift.__file__).parent
SOURCES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}
#: Who may do what, each for a reason; nobody else may
ALLOWED = {
    ("models/pickle_file.py", "joblib"): "opens a pickle where --trust-pickle says so",
    ("blocks/travelled.py", "pickle"): "Dask's own, between its processes: large parameters on their way",
    ("doctor/gpu.py", "subprocess"): "asks nvidia-smi, by a list of words that are all its own",
    ("cells/labels/flowjo.py", "xml"): "reads workspaces, once they are known to declare no entities",
    ("cells/labels/codes.py", "tempfile"): "a file without a name, for labels of many cells",
    ("doctor/machine.py", "tempfile"): "asks where temporary files go",
    ("__init__.py", "import_module"): "of names in a table of its own",
    ("auc/__init__.py", "import_module"): "likewise",
    ("cells/__init__.py", "import_module"): "likewise",
    ("error/__init__.py", "import_module"): "likewise",
    ("quantify/__init__.py", "import_module"): "likewise",
    ("error/engines.py", "import_module"): "likewise",
    ("cli/__init__.py", "import_module"): "likewise: of the verbs",
    ("encoding.py", "import_module"): "likewise: of saved models a class comes by its name in it alone",
    ("kernels/dispatch.py", "import_module"): "likewise",
    ("kernels/reference.py", "import_module"): "the library of an array, one of two",
    ("cluster/existing.py", "socket"): "asks whether anybody listens at the address of a scheduler",
    ("cluster/existing.py", "ssl"): "knows a refused certificate by its error",
    ("cluster/jobs.py", "tempfile"): "a folder for the certificates of one cluster, its owner's alone",
    ("report/__init__.py", "import_module"): "likewise",
    ("report/kinds.py", "import_module"): "of names in a table of its own",
    ("report/pages/page.py", "import_module"): "likewise",
    ("report/pages/html.py", "jinja2"): "fills one template, which is ours, and escapes all that comes in",
    (
        "report/pages/downloads.py",
        "tempfile",
    ): "has a table written as elsewhere, and reads it",
    ("cells/optional.py", "import_module"): "of names that its callers write out",
}
MODULES = {
    *(
        "pickle",
        "cPickle",
        "_pickle",
        "dill",
        "cloudpickle",
        "joblib",
        "marshal",
        "shelve",
        "dbm",
        "jsonpickle",
    ),
    *("subprocess", "pty", "popen2", "commands", "ctypes", "cffi", "code", "codeop", "runpy", "imp"),
    *("socket", "socketserver", "ssl", "http", "xmlrpc", "ftplib", "smtplib", "telnetlib", "asyncore"),
    *("xml", "lxml", "tempfile", "webbrowser", "jinja2"),
}
CALLS = {
    *("eval", "exec", "compile", "__import__", "breakpoint", "input"),
    *("import_module", "run_path", "run_module"),
    *("system", "popen", "execv", "execve", "execl", "spawnl", "spawnv", "startfile", "fork", "mktemp"),
    *(
        "read_pickle",
        "to_pickle",
        "read_hdf",
        "unsafe_load",
        "full_load",
        "load_all",
        "unpack_archive",
        "extractall",
    ),
}
OF_FRAMES = {"eval", "query"}  # pandas runs what these are given
ARGUMENTS = {"shell": True, "allow_pickle": True, "parse_math": True}
EVERYWHERE = ("0.0.0.0", "::", "tcp://:")


def found(tree):
    """What of the above occurs in a module, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names]
            names += (
                [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            )  # `from x import pickle` too
            yield from ((n.split(".")[0], node.lineno) for n in names if n.split(".")[0] in MODULES)
        elif isinstance(node, ast.Call):
            yield from _in_call(node)
        elif isinstance(node, ast.Constant) and node.value in EVERYWHERE:
            yield "listens everywhere", node.lineno
        elif isinstance(node, ast.Attribute) and node.attr in (
            "__reduce_ex__",
            "__globals__",
            "__subclasses__",
        ):
            yield node.attr, node.lineno


def _in_call(node):
    of, name = "", ""
    if isinstance(node.func, ast.Name):
        name = node.func.id
    elif isinstance(node.func, ast.Attribute):
        name, of = node.func.attr, ast.unparse(node.func.value)
    given = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
    if name in CALLS and of not in ("re",):
        yield name, node.lineno
    if name in OF_FRAMES and of:
        yield name, node.lineno
    if name == "load" and of in ("np", "numpy") and given.get("allow_pickle") is not False:
        yield "np.load", node.lineno
    if name == "load" and of == "yaml":
        yield "yaml.load", node.lineno
    for argument, value in ARGUMENTS.items():
        if given.get(argument) is value:
            yield f"{argument}={value}", node.lineno


def test_modules_run_nothing_but_what_is_allowed():
    every = ((name, *each) for name, path in SOURCES.items() for each in found(ast.parse(path.read_text())))
    assert not [f"{name}:{line}: {what}" for name, what, line in every if (name, what) not in ALLOWED]


@pytest.mark.parametrize(("name", "what"), ALLOWED)
def test_what_is_allowed_is_needed(name, what):
    assert what in {each for each, _ in found(ast.parse(SOURCES[name].read_text()))}


@pytest.mark.parametrize(
    "text",
    [
        *("import pickle", "from joblib import load", "import xml.etree.ElementTree", "import socket as s"),
        *("eval('1')", "os.system('ls')", "frame.query('a > 1')", "frame.eval('a')", "exec(text)"),
        *("np.load(path)", "np.load(path, allow_pickle=True)", "yaml.load(text)", "run(a, shell=True)"),
        *("pd.read_pickle(p)", "f(host='0.0.0.0')", "importlib.import_module(text)", "archive.extractall(p)"),
    ],
)
def test_it_would_be_found(text):
    assert list(found(ast.parse(text)))


@pytest.mark.parametrize(
    "text", ["re.compile('a')", "yaml.safe_load(text)", "np.load(p, allow_pickle=False)", "model.load(p)"]
)
def test_what_is_harmless_is_not_found(text):
    assert not list(found(ast.parse(text)))


def test_a_pickle_is_opened_in_one_place_which_says_what_it_risks():
    """And its module is imported where a model is opened, not by whoever imports the package."""
    from scaleshift.models import pickle_file

    openers = [name for name, what in ALLOWED if what in ("pickle", "joblib", "dill", "cloudpickle")]
    assert openers == ["models/pickle_file.py", "blocks/travelled.py"]
    assert "open" not in (ROOT / "blocks/travelled.py").read_text()  # what Dask has brought, and no file
    assert "runs" in pickle_file.__doc__
    assert "all rights" in pickle_file.__doc__
