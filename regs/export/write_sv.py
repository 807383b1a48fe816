"""Writes the map as a SystemVerilog package: offsets, resets and field positions, in upper case with a block prefix."""

from model import Block, Map, Register, Window

# Blocks whose words are also tables, for RTL that keeps plain registers in an array. Blocks of 32-bit registers.
TABLES = ("qdma_csr",)


def package(the_map: Map, header: str) -> str:
    lines = [f"// {line}" for line in header.splitlines()]
    lines += [
        "//",
        "// Offsets of registers count in bytes from their block's base, bases from the start of the BAR.",
        "// X_COUNT and X_STRIDE (bytes) describe arrays; X_F_LSB and X_F_WIDTH place field F of register X.",
        "// B_WORDS, B_WORD_RESET and B_WORD_WRITABLE list block B word by word, b_word finds a word's place in them.",
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
        if block.name in TABLES:
            lines += word_table(block)
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


def word_table(block: Block) -> list[str]:
    """The block's words in rising order of offset: resets, bits that a write replaces, and a function from offset to place."""
    prefix, words = block.name.upper(), []
    for register in block.registers:
        if register.width != 32:
            raise ValueError(f"{block.name}.{register.name}: only words of 32 bits go into a table")
        writable = sum(((1 << f.width) - 1) << f.lsb for f in register.fields if f.access == "rw")
        for index in range(register.count):
            reset = register.reset_by_index[index] if register.reset_by_index else register.reset() or 0
            words.append((register.offset + register.stride * index, reset, writable))
    words.sort()
    count = len(words)
    lines = ["", f"  // {block.name} word by word, in rising order of offset.", f"  localparam int unsigned {prefix}_WORDS = {count};"]
    for name, column in (("RESET", 1), ("WRITABLE", 2)):
        digits = ", ".join(f"32'h{entry[column]:X}" for entry in reversed(words))
        lines.append(f"  localparam bit [{count - 1}:0][31:0] {prefix}_WORD_{name} = {{{digits}}};")
    lines += [
        "  // Place of the word at an offset; the number of words where there is none.",
        f"  function automatic int unsigned {block.name}_word(input logic [31:0] offset);",
        "    unique case (offset)",
    ]
    lines += [f"      32'h{entry[0]:X}: return {place};" for place, entry in enumerate(words)]
    lines += [f"      default: return {prefix}_WORDS;", "    endcase", "  endfunction"]
    return lines


def word(name: str, value: int) -> str:
    return f"  localparam logic [31:0] {name} = 32'h{value:X};"
