"""Writes the map as a SystemVerilog package: offsets, resets and field positions, in upper case with a block prefix."""

from model import Map, Register, Window


def package(the_map: Map, header: str) -> str:
    lines = [f"// {line}" for line in header.splitlines()]
    lines += [
        "//",
        "// Offsets of registers count in bytes from their block's base, bases from the start of the BAR.",
        "// X_COUNT and X_STRIDE (bytes) describe arrays; X_F_LSB and X_F_WIDTH place field F of register X.",
        "`default_nettype none",
        "// The package holds the whole map, of which any one design uses a part.",
        "/* verilator lint_off UNUSEDPARAM */",
        "package onic_regs_pkg;",
    ]
    for window in the_map.windows:
        if window.index == 0:
            lines += window_params(window)
    for block in the_map.blocks.values():
        lines += ["", f"  // {block.name}: {block.desc}"]
        for register in block.registers:
            lines += register_params(block.name.upper(), register)
    return "\n".join(lines) + "\n\nendpackage\n/* verilator lint_on UNUSEDPARAM */\n`default_nettype wire\n"


def window_params(window: Window) -> list[str]:
    name = f"{'SHELL' if window.bar == 2 else 'QDMA'}_{window.name}"
    lines = ["", f"  // {window.desc}", word(f"{name}_BASE", window.base), word(f"{name}_BYTES", window.plugin_bytes or window.size)]
    if window.presence:
        lines.append(word(f"{name}_STRIDE", window.stride))
    return lines


def register_params(prefix: str, register: Register) -> list[str]:
    name = f"{prefix}_{register.name}"
    lines = [f"  // {register.desc}", word(name, register.offset)]
    if register.count > 1:
        lines += [word(f"{name}_COUNT", register.count), word(f"{name}_STRIDE", register.stride)]
    if register.reset_by_index:
        digits = "_".join(f"{v:08X}" for v in reversed(register.reset_by_index))
        lines.append(f"  localparam logic [{32 * register.count - 1}:0] {name}_RESET = {32 * register.count}'h{digits};")
    elif register.reset() is not None:
        lines.append(f"  localparam logic [{register.width - 1}:0] {name}_RESET = {register.width}'h{register.reset():X};")
    for field in register.fields:
        lines += [
            f"  localparam int unsigned {name}_{field.name}_LSB = {field.lsb};",
            f"  localparam int unsigned {name}_{field.name}_WIDTH = {field.width};",
        ]
    return lines


def word(name: str, value: int) -> str:
    return f"  localparam logic [31:0] {name} = 32'h{value:X};"
