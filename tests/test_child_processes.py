"""Child processes take neither modules nor programs from the current directory (CWE-427).

One test finds every place that starts a process, and the others start each kind of child in a directory that is full of
modules, settings and programs which leave a mark when they run.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from helpers.planted import PROGRAMS, Planted
from helpers.support import REPOSITORY
from seglog_conformance import toolchains
from seglog_conformance.parts import own_builds
from seglog_conformance.process import Command, ProcessTestee
from seglog_conformance.registry import ADAPTERS, Builder, Listed, listed, read_adapter
from seglog_conformance.wire import Client

from seglog_format.storage import child_processes
from seglog_format.storage.child_processes import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

OWNER: Final = "seglog_format/storage/child_processes.py"
SOURCES: Final = (
    "seglog_format",
    "conformance/seglog_conformance",
    "conformance/authoring",
    "tools",
    "proofs",
    "benchmarks",
)
STARTING: Final = {
    **dict.fromkeys(
        ("run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"), "subprocess"
    ),
    **dict.fromkeys(
        ("system", "popen", "startfile", "posix_spawn", "posix_spawnp", "spawnv", "spawnvp", "spawnve"), "os"
    ),
    **dict.fromkeys(("execv", "execve", "execvp", "execvpe", "execl", "execlp", "execle", "execlpe"), "os"),
    **dict.fromkeys(("create_subprocess_exec", "create_subprocess_shell"), "asyncio"),
    "which": "shutil",
    "spawn": "pty",
}
"""Functions that start or look up programs, and their modules."""
FORKS: Final = {"proofs/damages.py": "its children are forks of it, and start no interpreter"}


def started(path: Path) -> Iterator[str]:
    """Yield the calls of a file that start or look up a process by other means than the owner's."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    isolating = [node for node in nodes if isinstance(node, ast.With) and any(map(_isolates, node.items))]
    inside = {id(each) for node in isolating for each in ast.walk(node)}
    pools, processes = _pools(nodes), _processes(nodes)
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) if STARTING.get(name) == module:
                yield f"{path}:{node.lineno}: {module}.{name}"
            case ast.ImportFrom(module=str(module)) if any(STARTING.get(each.name) == module for each in node.names):
                yield f"{path}:{node.lineno}: {ast.unparse(node)}"
            case ast.Import() if any(each.asname and each.name in STARTING.values() for each in node.names):
                yield f"{path}:{node.lineno}: {ast.unparse(node)}"
            case ast.Call() if id(node) not in inside and ast.unparse(node.func) in pools | processes:
                yield f"{path}:{node.lineno}: {ast.unparse(node.func)}"


def _isolates(item: ast.withitem) -> bool:
    return "isolated_interpreters" in ast.unparse(item)


def _pools(nodes: list[ast.AST]) -> set[str]:
    """Return the names by which a file can make pools of processes."""
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and "multiprocessing" in (node.module or "")]
    pools = {each.name for node in imports for each in node.names if each.name == "Pool"}
    return {"ProcessPoolExecutor", "multiprocessing.Pool", "futures.ProcessPoolExecutor", *pools}


def _processes(nodes: list[ast.AST]) -> set[str]:
    """Return the calls by which a file starts the processes that it makes."""
    return {
        f"{ast.unparse(target)}.start"
        for node in nodes
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
        if ast.unparse(node.value.func).rpartition(".")[2] == "Process"
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }


def test_every_process_is_started_by_one_owner() -> None:
    files = [path for tree in SOURCES for path in sorted((REPOSITORY / tree).rglob("*.py"))]
    assert len(files) > 700
    found = {path.relative_to(REPOSITORY).as_posix(): list(started(path)) for path in files}
    assert found.pop(OWNER), "the walk finds what it looks for"
    assert [call for name, calls in found.items() if name not in FORKS for call in calls] == []
    assert all(found[name] for name in FORKS)


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run(x)",
        "subprocess.Popen(x)",
        "from subprocess import check_output",
        "import subprocess as sp",
        "os.execv(x, y)",
        "os.system('x')",
        "from multiprocessing import Pool\nwith Pool(2) as pool: ...",
        "ProcessPoolExecutor(2)",
        "process = context.Process()\nprocess.start()",
        "shutil.which('java')",
    ],
)
def test_a_call_past_the_owner_is_found(line: str, tmp_path: Path) -> None:
    path = tmp_path / "made.py"
    path.write_text(line, encoding="utf-8")
    assert len(list(started(path))) == 1


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planted:
    """Provide such a directory as the current one, with search paths that also lead into it."""
    directory = tmp_path / "here"
    directory.mkdir()
    made = Planted(directory)
    monkeypatch.chdir(directory)
    for name, entries in {"PATH": ["", ".", "bin"], "PYTHONPATH": ["", ".", "site"]}.items():
        before = [entry for entry in os.environ.get(name, "").split(os.pathsep) if entry]
        monkeypatch.setenv(name, os.pathsep.join([*entries, *before]))
    return made


def test_what_is_planted_would_run(planted: Planted) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc"]
    assert subprocess.run(command, capture_output=True, check=False).returncode, "it finds no sound module"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, env=variables, capture_output=True, check=False)
    subprocess.run(["java"], check=True)  # noqa: S607 - that is the fault
    assert {"grpc_tools.protoc", "java"} <= set(planted.used)


@pytest.mark.parametrize("keeps_path", [True, False])
def test_the_compiler_of_protobuf(keeps_path: bool, planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    pytest.importorskip("grpc_tools")
    if not keeps_path:
        monkeypatch.delenv("PYTHONPATH")
    assert compiled('syntax = "proto3"; message M { string x = 1; }', {}).endswith(b"proto3")
    assert planted.used == []


def test_a_schema_does_not_bring_the_compiler(planted: Planted) -> None:
    """Its files are written into the compiler's own directory, by names that a registry gives."""
    pytest.importorskip("grpc_tools")
    mark = planted.marks / "schema"
    text = f"open({str(mark)!r}, 'w')"
    compiled('syntax = "proto3"; message M { string x = 1; }', {"grpc_tools/protoc.py": text, "json.py": text})
    assert planted.used == []


@pytest.mark.parametrize("program", ["java", "javac", "mvn", "go", "cargo", "node", "npm", "python3"])
def test_tool_chains_that_prove_themselves(program: str, planted: Planted) -> None:
    toolchains._failure.cache_clear()
    toolchains._said.cache_clear()
    toolchains.complaints([program])
    assert planted.used == []
    found = child_processes.find_program(program)
    assert found is None or not Path(found).is_relative_to(planted.directory)


def test_programs_are_found_only_by_absolute_entries(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", "bin"]))
    monkeypatch.setenv("JAVA_HOME", "bin")
    monkeypatch.setenv("CLASSPATH", ":.:/lib")
    assert [name for name in PROGRAMS if child_processes.find_program(name)] == []
    with pytest.raises(FileNotFoundError, match="java"):
        child_processes.run(["java"], directory=planted.directory)
    found = child_processes.environment({"NEW": "1", "HOME": None})
    assert (found["PATH"], found["CLASSPATH"], found["NEW"]) == ("", "/lib", "1")
    assert {"JAVA_HOME", "HOME", "PYTHONPATH"} & found.keys() == set() or "PYTHONPATH" in found
    monkeypatch.setenv("PATH", str(planted.directory / "bin"))
    assert child_processes.find_program("java") == str(planted.directory / "bin" / "java"), "who names it, wants it"


def adapter(directory: Path) -> Listed:
    """Return an adapter with a build by relative programs, and with a module beside its program."""
    directory.mkdir()
    (directory / "helper.py").write_text("ANSWER = 'ok'\n", encoding="utf-8")
    (directory / "adapter.py").write_text(
        "import helper, json, os, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    print(json.dumps({'seq': asked['seq'], 'said': helper.ANSWER, 'in': os.getcwd()}), flush=True)\n",
        encoding="utf-8",
    )
    (directory / "tool").write_text("#!/bin/sh\necho built > product\n", encoding="utf-8")
    (directory / "tool").chmod(0o755)
    (directory / "adapter.toml").write_text(
        'name = "mine"\nlanguage = "Python"\nversions = ["1"]\ntoolchain = ["python3"]\n'
        'build = [["mkdir", "-p", "made"], ["cp", "{adapter}/tool", "made"], ["made/tool"], '
        '["{python}", "-m", "json.tool", "--help"]]\n'
        'run = ["{python}", "{adapter}/adapter.py"]\n',
        encoding="utf-8",
    )
    return listed(str(directory))


def test_the_build_and_the_run_of_an_adapter(planted: Planted, tmp_path: Path) -> None:
    wanted = adapter(tmp_path / "adapter")
    builder = Builder(tmp_path / "builds")
    testee = builder.testee(wanted)
    assert (tmp_path / "builds" / "mine-1" / "product").read_text(encoding="utf-8") == "built\n"
    assert isinstance(testee, ProcessTestee)
    assert wanted.adapter is not None
    client = Client(builder.command(wanted.adapter, "1").arguments)
    answer = client.ask({"seq": 1, "op": "hello"})
    client.stop()
    client._process.communicate()
    assert answer["said"] == "ok"
    assert planted.used == []


def test_an_adapter_without_a_build_directory_is_not_in_the_current_one(tmp_path: Path) -> None:
    assert Command(arguments=("x",)).directory == Path(tmp_path.anchor)


def test_builds_and_adapters_that_are_planted_are_not_the_suite_s(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "kafka-python"
    for directory in (planted.directory / name, planted.directory / "build" / "conform" / f"{name}-3.0.12"):
        directory.mkdir(parents=True)
        (directory / "adapter.toml").write_text((ADAPTERS / name / "adapter.toml").read_text(), encoding="utf-8")
    assert listed(name).adapter == read_adapter(ADAPTERS / name)
    for cache in ("", "cache", str(planted.directory.parent / "cache")):
        monkeypatch.setenv("XDG_CACHE_HOME", cache)
        assert not own_builds().is_relative_to(planted.directory)
        assert Builder().builds == own_builds()


def answer(number: int) -> int:
    return number + 1


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_that_share_work(method: str, planted: Planted) -> None:
    """As `seglog warm` does; on some systems they are new interpreters."""
    program = (
        "import sys; sys.path.append(sys.argv[1]); from test_child_processes import *\n"
        f"with child_processes.process_pool(1, get_context({method!r})) as pool:\n"
        "    print(pool.submit(answer, 1).result())\n"
    )
    done = child_processes.run(
        [sys.executable, "-c", program, str(Path(__file__).parent)],
        directory=planted.directory,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "2\n"
    assert planted.used == []
    assert get_context(method) is not None


def test_the_variables_of_this_process_are_left_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "relative")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    before = dict(os.environ)
    with child_processes.isolated_interpreters():
        assert os.environ["PYTHONSAFEPATH"] == "1"
        assert "PYTHONPATH" not in os.environ
        os.environ["SET_INSIDE"] = "1"
    assert dict(os.environ) == {**before, "SET_INSIDE": "1"}
    del os.environ["SET_INSIDE"]
