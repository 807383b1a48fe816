"""Builds the card for cocotb, once, and runs one of the opponents on it.

    opponents.py check
    opponents.py build --verilator ROOT --models DIR [--cxx COMMAND] [--parameter NAME=VALUE]…
    opponents.py run minimal|axi PROGRAM FRAMES FIGURES

`check` fails, with one line, where the packages can't run. `build` prints the simulator's path. FRAMES is the stimulus
(card.read_frames), FIGURES the JSON file that the opponent writes. cocotb must be importable. Needs neither make nor perl:
the Verilated C++ is compiled here. The model has the same RTL, parameters, Verilator and optimisation as card `rtl`, but
neither waves nor coverage in it, which only makes it faster.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

try:
    import cocotb_tools.config
    import cocotbext.axi  # noqa: F401  # only whether it is there
    import find_libpython
except ImportError as error:
    sys.exit(f"{error} (Python {sys.version.split()[0]})")

HERE = Path(__file__).resolve().parent
RTL = HERE.parents[2] / "rtl-bridge" / "rtl"
TOP = "onic_card"
COMPILERS = 2

VERILATOR_FLAGS = (
    "--cc --vpi --assert --x-assign unique --x-initial unique --threads 1 --timescale 1ps/1ps --no-timing "
    f"-Wno-fatal -Wno-lint -Wno-style --prefix Vtop --top-module {TOP}"
).split()
CXX_FLAGS = (
    "-std=gnu++20 -fcf-protection=none -faligned-new -w -DVERILATOR=1 -DVM_COVERAGE=0 -DVM_SC=0 -DVM_TRACE=0 "
    "-DVM_TRACE_FST=0 -DVM_TRACE_VCD=0 -DVM_TRACE_SAIF=0"
).split()
RUNTIME = ("verilated.cpp", "verilated_dpi.cpp", "verilated_threads.cpp", "verilated_vpi.cpp")


def say(text):
    print(f"cocotb: {text}", file=sys.stderr, flush=True)


def run(command, **options):
    """Run a command; what it printed is shown only when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"cocotb: {command[0]} failed ({done.returncode}):\n{done.stdout[-4000:]}")
    return done.stdout


def key(args):
    """Name of the model, all that it is made of; as long as the names of other tops in the cache, to be cleaned with them."""
    digest = hashlib.sha256()
    for path in sorted([*RTL.rglob("*.sv"), *RTL.rglob("*.svh"), *RTL.rglob("*.f"), *HERE.glob("*.vlt")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(repr((VERILATOR_FLAGS, CXX_FLAGS, RUNTIME, args.parameter)).encode())
    digest.update((args.verilator / "include" / "verilated_config.h").read_bytes())
    digest.update(main_cpp().read_bytes() + run([args.cxx, "--version"]).encode())
    return digest.hexdigest()[:24]


def main_cpp():
    return Path(cocotb_tools.config.share_dir) / "lib" / "verilator" / "verilator.cpp"


def verilate(args, out):
    """The file list has paths relative to its folder."""
    say("Verilating the card for cocotb")
    command = [str(args.verilator / "bin" / "verilator_bin"), *VERILATOR_FLAGS, "--Mdir", str(out)]
    environment = {**os.environ, "VERILATOR_ROOT": str(args.verilator)}
    parameters = [f"-G{parameter}" for parameter in args.parameter]
    run([*command, *parameters, str(HERE / "ports.vlt"), "-F", f"{TOP}.f"], cwd=RTL, env=environment)


def compile_all(args, folder):
    """Code that runs once, at construction, is not optimised."""
    include = args.verilator / "include"
    sources = [*folder.glob("*.cpp"), *(include / name for name in RUNTIME), main_cpp()]
    sources.sort(key=lambda path: path.stat().st_size, reverse=True)

    def compile_one(numbered):
        number, source = numbered
        say(f"compiling the RTL ({number} of {len(sources)} begun)")
        target = folder / f"{source.stem}.o"
        level = "-O0" if source.stem.endswith("__Slow") else "-O2"
        paths = ["-I", str(folder), "-isystem", str(include), "-isystem", str(include / "vltstd")]
        run([args.cxx, *CXX_FLAGS, level, *paths, "-c", str(source), "-o", str(target)])
        return str(target)

    with ThreadPoolExecutor(COMPILERS) as pool:
        return list(pool.map(compile_one, enumerate(sources, 1)))


def model(args):
    """Path of the simulator, built if it is not there."""
    folder = args.models / key(args)
    program = folder / "Vtop"
    if program.is_file():
        return program
    part = args.models / f"{folder.name}.{os.getpid()}.part"
    part.mkdir(parents=True)
    try:
        verilate(args, part)
        objects = compile_all(args, part)
        link = [f"-L{cocotb_tools.config.libs_dir}", "-lcocotbvpi_verilator", "-lpthread"]
        run([args.cxx, "-o", str(part / program.name), *objects, *link])
        for path in part.iterdir():
            if path.name != program.name:
                path.unlink()
        if not folder.exists():
            part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return program


def libpython():
    """Simulators load Python, so it must be there as a library."""
    found = find_libpython.find_libpython()
    if found is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        sys.exit(f"Python {version} has no shared library (Debian's package is libpython{version})")
    return found


def simulate(args):
    """One simulation. Its figures are the proof that all frames came through."""
    args.figures.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(cocotb_tools.config.libs_dir),
        "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYGPI_PYTHON_BIN": sys.executable,
        "GPI_USERS": f"{libpython()};{cocotb_tools.config.pygpi_entry_point()}",
        "COCOTB_TOPLEVEL": TOP,
        "TOPLEVEL_LANG": "verilog",
        "COCOTB_TEST_MODULES": args.driver,
        "COCOTB_RESULTS_FILE": str(args.figures.with_suffix(".xml")),
        "COCOTB_LOG_LEVEL": "WARNING",  # a line for each frame would be most of the time
        "GPI_LOG_LEVEL": "WARNING",
        "COCOTB_TRUST_INERTIAL_WRITES": "1",  # as cocotb's own runner has it for Verilator: writes go straight through
        "ONIC_FRAMES": str(args.frames.resolve()),
        "ONIC_FIGURES": str(args.figures.resolve()),
    }
    printed = run([str(args.program)], env=environment)
    if not args.figures.is_file():
        sys.exit(f"cocotb: {args.driver} failed:\n{printed[-4000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check")
    build = commands.add_parser("build")
    build.add_argument("--verilator", type=Path, required=True)
    build.add_argument("--models", type=Path, required=True)
    build.add_argument("--cxx", default="g++")
    build.add_argument("--parameter", action="append", default=[])
    one = commands.add_parser("run")
    one.add_argument("driver", choices=("minimal", "axi"))
    one.add_argument("program", type=Path)
    one.add_argument("frames", type=Path)
    one.add_argument("figures", type=Path)
    args = parser.parse_args()
    if args.command == "check":
        libpython()
    elif args.command == "build":
        print(model(args))
    else:
        simulate(args)


if __name__ == "__main__":
    main()
