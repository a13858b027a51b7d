"""NVRTC by ctypes: compiles CUDA for any GPU on a machine that has none, and reads what came out."""

import ctypes
import functools
import importlib.util
import struct
from pathlib import Path
from typing import NamedTuple

# attributes in the section .nv.info of a cubin, each with the number of a symbol and a value
_FRAME_SIZE, _REGISTERS = 0x11, 0x2F
_WITH_VALUES = 0x04
_SYMBOL_TABLE = 2


class Resources(NamedTuple):
    """What one thread of a kernel takes."""

    registers: int
    stack: int  # bytes: spilled registers, and arrays that are indexed at run time


@functools.cache
def nvrtc():
    """The library as the wheel nvidia-cuda-nvrtc brings it, or None."""
    package = importlib.util.find_spec("nvidia")
    folders = package.submodule_search_locations if package else []
    found = [path for folder in folders for path in Path(folder).glob("*/lib/libnvrtc.so.*")]
    return ctypes.CDLL(str(found[0])) if found else None


def compile_cubin(text, options, architecture):
    """The machine code of a CUDA text, made as CuPy makes it; AssertionError with the log otherwise."""
    library, program = nvrtc(), ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"text.cu", 0, None, None) == 0
    options = [*options, "-ftz=true", f"-arch={architecture}", "--device-as-default-execution-space"]
    passed = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), passed)
    log = _bytes(library, program, "ProgramLog").decode()
    assert not failed, log
    code = _bytes(library, program, "CUBIN")
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return code, log.strip("\0\n ")


def _bytes(library, program, what):
    size = ctypes.c_size_t()
    assert getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
    buffer = ctypes.create_string_buffer(size.value)
    assert getattr(library, f"nvrtcGet{what}")(program, buffer) == 0
    return buffer.raw


def resources(cubin):
    """What the kernels of a cubin, an ELF file, take: by name."""
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + i * size) for i in range(count)]
    sections = {_name(cubin, headers[names][4] + header[0]): header for header in headers}
    (table,) = (header for header in headers if header[1] == _SYMBOL_TABLE)
    strings = headers[table[6]][4]
    values: dict[str, dict[int, int]] = {}
    place, end = sections[".nv.info"][4], sections[".nv.info"][4] + sections[".nv.info"][5]
    while place < end:
        form, attribute, length = struct.unpack_from("<BBH", cubin, place)
        place += 4
        if form == _WITH_VALUES:
            if attribute in (_FRAME_SIZE, _REGISTERS):
                symbol, value = struct.unpack_from("<II", cubin, place)
                (name,) = struct.unpack_from("<I", cubin, table[4] + 24 * symbol)
                values.setdefault(_name(cubin, strings + name), {})[attribute] = value
            place += length
    return {name: Resources(found[_REGISTERS], found[_FRAME_SIZE]) for name, found in values.items()}


def _name(data, place):
    return data[place : data.index(b"\0", place)].decode()
