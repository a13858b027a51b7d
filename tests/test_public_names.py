"""Every public name has a docstring with an example that pytest runs, and is where the package says it is."""

import ast
import doctest
import importlib
import inspect
import pkgutil
from importlib import resources

import pytest

import scaleshift

# Data needs no example: constants, and properties that are another name of what is documented elsewhere.
SAME = "Another name of"


def public_modules():
    """The package, and all modules that it or one of these offers in `__all__`."""
    found, asked = {}, [scaleshift]
    while asked:
        module = asked.pop()
        found[module.__name__] = module
        offered = [getattr(module, name) for name in module.__all__]
        asked += [one for one in offered if inspect.ismodule(one) and one.__name__ not in found]
    return found


MODULES = public_modules()


def behaviour(thing):
    """The function or class behind a name, or None of data."""
    if isinstance(thing, property):
        return None if (thing.__doc__ or "").startswith(SAME) else thing.fget
    thing = inspect.unwrap(getattr(thing, "__func__", thing))  # of class and static methods
    return thing if inspect.isclass(thing) or inspect.isfunction(thing) else None


def public_things():
    """What is called or asked by a public name, {name: function or class}; of classes their methods too."""
    found = {}
    for module in MODULES.values():
        for name in module.__all__:
            offered = getattr(module, name)
            things = {name: offered}
            if inspect.isclass(offered):
                members = inspect.getmembers_static(offered, lambda member: behaviour(member) is not None)
                things |= {
                    f"{name}.{member}": thing for member, thing in members if not member.startswith("_")
                }
            for path, thing in things.items():
                inner = behaviour(thing)
                if (
                    not path.rpartition(".")[2].isupper()
                    and inner
                    and inner.__module__.startswith("scaleshift")
                ):
                    found[f"{module.__name__}.{path}"] = inner
    return found


THINGS = public_things()


def examples_of(thing):
    """Examples of a thing as pytest finds them in the module where it is defined."""
    home = importlib.import_module(thing.__module__)
    tests = doctest.DocTestFinder().find(thing, f"{thing.__module__}.{thing.__qualname__}", home)
    return next(iter(tests)).examples if tests else []


def test_the_walk_meets_functions_classes_methods_and_properties():
    assert len(THINGS) > 180
    assert {
        "scaleshift.DFM.merge",
        "scaleshift.SparseAUC.path_",
        "scaleshift.error.importance_weights",
        "scaleshift.models.ModelFile.of",
        "scaleshift.slices.metrics.score",
    } <= set(THINGS)
    assert not {"scaleshift.cluster.KINDS", "scaleshift.DFM.METHOD", "scaleshift.DominoSlicer.mm"} & set(
        THINGS
    )


@pytest.mark.parametrize("name", sorted(THINGS))
def test_every_public_name_has_an_example_that_shows_something(name):
    thing = THINGS[name]
    examples = examples_of(thing)
    assert examples, f"{name} ({thing.__module__}.{thing.__qualname__}): its docstring needs an example, >>>"
    assert any(example.want or example.exc_msg for example in examples), f"{name}: its example shows nothing"
    assert not any(doctest.SKIP in example.options for example in examples), f"{name}: an example is skipped"


def test_pytest_runs_the_examples_of_the_whole_package(pytestconfig):
    assert pytestconfig.getoption("doctestmodules")
    assert "scaleshift" in pytestconfig.getini("testpaths")
    ignored = (*(pytestconfig.getoption("ignore") or ()), *(pytestconfig.getoption("ignore_glob") or ()))
    assert not any("scaleshift" in str(pattern) for pattern in ignored)


def imported_for_type_checkers(module):
    """Names that a module imports under TYPE_CHECKING, with what they are imported from."""
    blocks = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.If)]
    [block] = [node for node in blocks if ast.unparse(node.test) == "TYPE_CHECKING"]
    found = [(alias.name, node.module) for node in block.body for alias in node.names]
    assert len(found) == len(dict(found))
    return dict(found)


LAZY = [name for name, module in MODULES.items() if hasattr(module, "_HOMES")]


@pytest.mark.parametrize("name", LAZY)
def test_names_are_imported_from_the_same_place_for_users_and_for_type_checkers(name):
    module = MODULES[name]
    homes = {one: home for one, home in imported_for_type_checkers(module).items() if home != name}
    assert homes == module._HOMES


def test_the_package_offers_what_it_imports_and_nothing_else():
    everything = imported_for_type_checkers(scaleshift)
    assert {name for name, home in everything.items() if home == "scaleshift"} == scaleshift._MODULES
    assert set(scaleshift.__all__) == set(everything)


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_what_a_module_offers_is_there_and_in_dir_and_nothing_else_pretends_to_be(module):
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    assert set(getattr(module, "_HOMES", ())) <= set(module.__all__)
    for name, home in getattr(module, "_HOMES", {}).items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        module.nonsense  # noqa: B018
    assert inspect.getdoc(module)


def test_every_package_that_users_are_told_of_is_public():
    packages = {info.name for info in pkgutil.iter_modules(scaleshift.__path__) if info.ispkg}
    internal = {"blocks", "cli", "data", "doctor", "kernels", "solve"}
    assert packages - internal == scaleshift._MODULES - {"datasets"}


def test_type_checkers_are_told_that_the_package_is_typed():
    assert (resources.files("scaleshift") / "py.typed").is_file()
