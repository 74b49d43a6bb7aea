# SPDX-License-Identifier: Apache-2.0
"""First code of the guest's Python: loads all modules of a run from one file, then starts the run.

Imported one by one, a hundred modules take four thousand system calls, and a third of the modules is never used. This
module imports only modules that are built into the interpreter.
"""

import builtins
import sys
from marshal import dumps, loads
from posix import O_RDONLY, open, pread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import SourceFileLoader
    from types import CodeType, ModuleType
else:
    ModuleType = type(sys)

# The interpreter starts isolated and without site.
FOLDERS = ["/code", "/usr/lib/python3.11/lib-dynload", "/usr/lib/python3.11", "/usr/lib/python3/dist-packages"]
MODULES = "/code/modules"
PROGRAM = "/code/start.pyc"
WANTED = ("longfat.guest.init", "longfat.guest.run")
SIZE_BYTES = 8


class Waiting(ModuleType):
    """A module whose code is executed at the first access to one of its names."""

    def __getattr__(self, name: str) -> object:
        """Execute the code, after the code of the module's package."""
        package = sys.modules.get(self.__name__.rpartition(".")[0])
        if isinstance(package, Waiting):
            package.execute()
        if isinstance(self, Waiting):  # unless the package has imported it
            self.execute()
        return getattr(self, name)

    def execute(self) -> None:
        """Become an ordinary module."""
        descriptor, size, offset = self.__dict__.pop("__waiting__")
        self.__class__ = ModuleType  # type: ignore[assignment]
        exec(loads(pread(descriptor, size, offset)), self.__dict__)


def load(file: str = MODULES) -> None:
    """Make all modules of the file available to ``import``."""
    descriptor = open(file, O_RDONLY)
    start = SIZE_BYTES + int.from_bytes(pread(descriptor, SIZE_BYTES, 0), "little")
    there, absent, functions = loads(pread(descriptor, start - SIZE_BYTES, SIZE_BYTES))
    sys.modules.update(dict.fromkeys(absent))  # saves the search for them
    for name, path, is_package, size, offset in there:
        module = sys.modules[name] = Waiting(name)
        parent, _, own = name.rpartition(".")
        module.__dict__.update(__file__=path, __package__=name if is_package else parent)
        module.__dict__["__waiting__"] = descriptor, size, start + offset
        if is_package:
            module.__dict__["__path__"] = [path.rpartition("/")[0]]
        if name == "dataclasses":
            module.__dict__["exec"] = Compiled(functions).exec
        if parent:
            setattr(sys.modules[parent], own, module)


class Compiled:
    """Replacement of ``exec`` in dataclasses, which compiles six functions for each class: stores their code."""

    def __init__(self, code: "dict[str, CodeType]") -> None:
        self.code = code

    def exec(self, text: str, names: dict[str, object], own: dict[str, object]) -> None:
        """Execute the text, after compiling it if it is new."""
        if text not in self.code:
            self.code[text] = compile(text, "<string>", "exec")
        exec(self.code[text], names, own)


def prepare() -> None:
    """Compile the guest's code, and write the code of all modules of a run into one file.

    Called by the interpreter that will run them, before it imports any of them.
    """
    sys.dont_write_bytecode = True
    collect(WANTED, MODULES)

    import compileall
    from py_compile import PycInvalidationMode, compile

    compileall.compile_dir("/code/longfat", quiet=1, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
    compile(__file__, PROGRAM, doraise=True, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)


def collect(wanted: "Sequence[str]", file: str) -> None:
    """Import the wanted modules, and write their code, and the code of every module they import, into the file."""
    from importlib import import_module
    from importlib.machinery import SourceFileLoader

    loaders: list[SourceFileLoader] = []
    absent: list[str] = []
    compiled = Compiled({})
    create = SourceFileLoader.create_module

    def noted(loader: "SourceFileLoader", spec: object) -> None:
        loaders.append(loader)
        create(loader, spec)  # type: ignore[arg-type]

    class Missed:
        """The last finder, which records the modules that no other finder has."""

        def find_spec(self, name: str, path: object, target: object = None) -> None:
            absent.append(name)

    sys.meta_path.append(Missed())
    SourceFileLoader.create_module = noted  # type: ignore[method-assign,assignment]
    import_module("dataclasses").__dict__["exec"] = compiled.exec
    for name in wanted:
        import_module(name)
    SourceFileLoader.create_module = create  # type: ignore[method-assign]
    sys.meta_path.pop()
    _write(loaders, absent, compiled.code, file)


def _write(
    loaders: "Sequence[SourceFileLoader]", absent: "Sequence[str]", functions: "dict[str, CodeType]", file: str
) -> None:
    index, codes, offset = [], [], 0
    for loader in loaders:
        codes.append(dumps(loader.get_code(loader.name)))
        index.append((loader.name, loader.path, loader.is_package(loader.name), len(codes[-1]), offset))
        offset += len(codes[-1])
    head = dumps((index, list(absent), functions))
    with builtins.open(file, "wb") as modules:
        modules.write(len(head).to_bytes(SIZE_BYTES, "little") + head + b"".join(codes))


if __name__ == "__main__":
    __name__ = "longfat.guest.start"  # so that warnings in the executed modules do not name the main program
    sys.path[:] = FOLDERS
    composing = "prepare" in sys.argv  # User-Mode Linux adds further words
    if composing:
        prepare()
    else:
        load()
    from longfat.guest import init

    init.power_off() if composing else init.main()
