"""Writes the map as Rust: a module of constants for each block, and the table of all registers.

The files are laid out by hand and left alone by rustfmt (`#[rustfmt::skip]` in their mod.rs).
"""

from model import Block, Map, Register, Window

STANDING = {"measured": "Measured", "vendor": "Vendor", "assumed": "Assumed", "ours": "Ours"}
ACCESS = {"ro": "ReadOnly", "rw": "ReadWrite", "wo": "WriteOnly", "w1c": "WriteOneToClear"}
WALK = {"full": "Full", "reset_only": "ResetOnly", "none": "None"}
BAR = {0: "Qdma", 2: "Shell"}


def files(the_map: Map, header: str) -> dict[str, str]:
    """File name to text, for regs/src/generated."""
    head = "".join(f"// {line}\n" for line in header.splitlines())
    out = {f"{b.name}.rs": head + block_file(b) for b in the_map.blocks.values()}
    out["qdma.rs"] = head + bar_file(the_map, 0, "BAR0, the QDMA: where its blocks start.")
    out["shell.rs"] = head + bar_file(the_map, 2, "BAR2, the shell: where its blocks start.")
    out["table.rs"] = head + table_file(the_map)
    out["mod.rs"] = head + mod_file(sorted(name[:-3] for name in out))
    return out


def mod_file(names: list[str]) -> str:
    lines = ["//! The register map as Rust. Generated: change regs/rdl, then run `cargo run -p ci -- regs`.", ""]
    for name in names:
        lines += ["#[rustfmt::skip]", f"pub mod {name};"]
    return "\n".join(lines) + "\n"


def block_file(block: Block) -> str:
    lines = [f"//! {block.desc}", "//!", "//! Offsets count in bytes from the block's base.", ""]
    if any(small_fields(r) for r in block.registers):
        lines += ["use crate::Field;", ""]
    lines += ["/// Bytes that the address decoder gives to the block.", f"pub const SIZE_BYTES: u32 = {block.size:#x};"]
    for register in block.registers:
        lines += ["", *register_consts(register)]
    for register in block.registers:
        if small_fields(register):
            lines += ["", *field_module(register)]
    return "\n".join(lines) + "\n"


def register_consts(register: Register) -> list[str]:
    wide = " 64 bits, low word first." if register.width == 64 else ""
    lines = [
        f"/// {register.desc}{wide}",
        "///",
        f"/// {access_text(register)} Source: {register.source} ({register.standing}).",
        f"pub const {register.name}: u32 = {register.offset:#x};",
    ]
    if register.count > 1:
        lines += [
            f"/// How many registers `{register.name}` are there.",
            f"pub const {register.name}_COUNT: u32 = {register.count};",
            f"/// Bytes from one `{register.name}` to the next.",
            f"pub const {register.name}_STRIDE: u32 = {register.stride:#x};",
        ]
    if register.reset_by_index:
        values = ", ".join(f"{v:#010x}" for v in register.reset_by_index)
        lines += [
            f"/// Each `{register.name}` after reset.",
            f"pub const {register.name}_RESET: [u32; {register.count}] = [{values}];",
        ]
    elif register.reset() is not None:
        kind = "u64" if register.width == 64 else "u32"
        lines += [
            f"/// `{register.name}` after reset" + (f"; varies with: {register.varies}." if register.varies else "."),
            f"pub const {register.name}_RESET: {kind} = {register.reset():#x};",
        ]
    return lines


def access_text(register: Register) -> str:
    kinds = sorted({f.access for f in register.fields})
    words = {"ro": "read only", "rw": "read and write", "wo": "write only", "w1c": "write 1 to clear"}
    text = ", ".join(words[k] for k in kinds)
    return text[0].upper() + text[1:] + ("" if len(kinds) == 1 else ", by field") + "."


def small_fields(register: Register) -> bool:
    """Fields get constants where a 32-bit access reaches the whole register."""
    return register.width == 32


def field_module(register: Register) -> list[str]:
    lines = [f"/// Fields of [`{register.name}`].", f"pub mod {register.name.lower()} {{", "    use super::Field;"]
    for field in register.fields:
        reset = "" if field.reset is None or field.access == "wo" else f"; reset {field.reset:#x}"
        lines += [
            "",
            f"    /// {field.desc}",
            "    ///",
            f"    /// {ACCESS[field.access]}{reset}. Source: {field.source} ({field.standing}).",
            f"    pub const {field.name}: Field = Field::new({field.lsb}, {field.width});",
        ]
    return lines + ["}"]


def bar_file(the_map: Map, bar: int, title: str) -> str:
    windows = [w for w in the_map.windows if w.bar == bar]
    uses = []
    if any(w.presence == "function" for w in windows):
        uses.append("FuncId")
    if any(w.presence == "port" for w in windows):
        uses.append("PortId")
    lines = [f"//! {title}", "//!", "//! Offsets count in bytes from the start of the BAR.", ""]
    if uses:
        lines += [f"use crate::{{{', '.join(uses)}}};", ""]
    for window in windows:
        if window.index == 0:
            lines += window_consts(window)
    return "\n".join(lines)


def window_consts(window: Window) -> list[str]:
    doc = [f"/// {window.desc}", "///", f"/// Source: {window.source} ({window.standing})."]
    if not window.presence:
        lines = [*doc, f"pub const {window.name}: u32 = {window.base:#x};"]
    else:
        kind, name = {"function": ("FuncId", "func"), "port": ("PortId", "port")}[window.presence]
        doc += ["///", f"/// Defined for every number; only {window.presence}s of the card answer as such."]
        lines = [
            *doc,
            f"pub const fn {window.name.lower()}({name}: {kind}) -> u32 {{",
            f"    {window.base:#x} + {window.stride:#x} * {name}.0 as u32",
            "}",
        ]
    return [*lines, "/// Bytes of that window.", f"pub const {window.name}_SIZE_BYTES: u32 = {window.plugin_bytes or window.size:#x};", ""]


def table_file(the_map: Map) -> str:
    lines = [
        "//! Every register and every window of the card, as data: for `onic regs`, the map walk and the tests.",
        "",
        "use crate::table::{Absent, Access, FieldInfo, Presence, Register, Standing, Unmapped, Walk, Window};",
        "use crate::{Bar, Field64};",
        "",
    ]
    for block in the_map.blocks.values():
        for register in block.registers:
            lines += field_table(block, register)
    rows = [row for window in the_map.windows for row in register_rows(the_map, window)]
    lines += ["/// All registers, by BAR and offset.", f"pub static REGISTERS: [Register; {len(rows)}] = ["]
    lines += [text for _, text in sorted(rows)]
    lines += ["];", "", "/// All windows, by BAR and base.", f"pub static WINDOWS: [Window; {len(the_map.windows)}] = ["]
    lines += [window_row(w) for w in sorted(the_map.windows, key=lambda w: (w.bar, w.base))]
    return "\n".join(lines) + "\n];\n"


def fields_name(block: Block, register: Register) -> str:
    return f"{block.name.upper()}_{register.name}"


def field_table(block: Block, register: Register) -> list[str]:
    lines = [f"static {fields_name(block, register)}: [FieldInfo; {len(register.fields)}] = ["]
    for f in register.fields:
        reset = 0 if f.reset is None else f.reset
        lines.append(
            f"    FieldInfo {{ name: {quote(f.name)}, bits: Field64::new({f.lsb}, {f.width}), access: Access::{ACCESS[f.access]}, "
            f"reset: {reset:#x}, summary: {quote(f.desc)}, source: {quote(f.source)}, standing: Standing::{STANDING[f.standing]} }},"
        )
    return [*lines, "];"]


def register_rows(the_map: Map, window: Window) -> list[tuple]:
    """Rows of one window; a row for each element where elements depend on the card's shape."""
    if window.block is None:
        return []
    block = the_map.blocks[window.block]
    rows = []
    for register in block.registers:
        if register.presence:
            for i in range(register.count):
                name = register.name.replace("FUNCTION_", f"FUNCTION{i}_", 1)
                at = window.base + register.offset + i * register.stride
                rows.append(((window.bar, at), register_row(window, block, register, name, at, 1, (register.presence, i))))
        else:
            at = window.base + register.offset
            presence = (window.presence, window.index)
            rows.append(((window.bar, at), register_row(window, block, register, register.name, at, register.count, presence)))
    return rows


def register_row(window: Window, block: Block, r: Register, name: str, at: int, count: int, presence: tuple) -> str:
    reset = "None" if r.reset() is None else f"Some({r.reset():#x})"
    reads_as = "None" if r.reads_as is None else f"Some({r.reads_as:#x})"
    by_index = "&[" + ", ".join(f"{v:#x}" for v in r.reset_by_index) + "]"
    return (
        f"    Register {{ block: {quote(block.name)}, name: {quote(name)}, bar: Bar::{BAR[window.bar]}, offset: {at:#x}, "
        f"count: {count}, stride: {r.stride if count > 1 else r.width // 8:#x}, width_bits: {r.width}, presence: {presence_text(*presence)}, reset: {reset}, "
        f"reset_by_index: {by_index}, reads_as: {reads_as}, alias_of: {quote(r.alias_of)}, varies: {quote(r.varies)}, walk: Walk::{WALK[r.walk]}, "
        f"fields: &{fields_name(block, r)}, summary: {quote(r.desc)}, source: {quote(r.source)}, standing: Standing::{STANDING[r.standing]} }},"
    )


def presence_text(kind: str, index: int) -> str:
    return {"": "Presence::Always", "function": f"Presence::Function({index})", "port": f"Presence::Port({index})"}[kind]


def window_row(w: Window) -> str:
    unmapped = f"Unmapped::Value({w.unmapped[1]:#x})" if w.unmapped[0] == "value" else echo_text("Unmapped", w.unmapped)
    absent = "Absent::DecodeError" if w.absent[0] == "decerr" else echo_text("Absent", w.absent)
    block = "None" if w.block is None else f"Some({quote(w.block)})"
    return (
        f"    Window {{ name: {quote(w.name)}, block: {block}, bar: Bar::{BAR[w.bar]}, base: {w.base:#x}, size_bytes: {w.size:#x}, "
        f"plugin_bytes: {w.plugin_bytes:#x}, presence: {presence_text(w.presence, w.index)}, unmapped: {unmapped}, absent: {absent}, walk: Walk::{WALK[w.walk]}, "
        f"summary: {quote(w.desc)}, source: {quote(w.source)}, standing: Standing::{STANDING[w.standing]} }},"
    )


def echo_text(kind: str, echo: tuple) -> str:
    return f"{kind}::Echo {{ prefix: {echo[1]:#x}, bits: {echo[2]} }}"


def quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
