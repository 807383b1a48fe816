"""Writes the map as Markdown, one page for each block and one for all windows.

PeakRDL's Markdown exporter was tried: it unrolls every array (5 MB for the doorbells alone) and knows nothing of
`source` and `standing`, which are the point of these pages.
"""

from model import Block, Field, Map, Register, Window

ACCESS = {"ro": "RO", "rw": "RW", "wo": "WO", "w1c": "W1C"}


def files(the_map: Map, provenance: str) -> dict[str, str]:
    """File name to text, for docs/registers."""
    head = "<!-- " + " ".join(provenance.splitlines()) + " -->\n\n"
    out = {f"{b.name}.md": head + block_page(the_map, b) for b in the_map.blocks.values()}
    out["README.md"] = head + index_page(the_map)
    return out


def index_page(the_map: Map) -> str:
    lines = [
        "# Register map",
        "",
        "What answers at which address of a function's two register BARs. Offsets are in bytes, registers 32 bits wide and",
        "little endian; 64-bit counters are two words, low one first. Reset is what is read once reset has finished, before",
        "traffic. The C header is regs/generated/onic_regs.h, the RTL's package rtl-bridge/rtl/gen/onic_regs_pkg.sv.",
        "",
        "Access: RO read only, RW read and write, WO write only, W1C write 1 to clear. Standing: *measured* on upstream's RTL",
        "or on the bus under upstream's driver; *vendor* text or source; *assumed*; *ours*, where upstream has nothing.",
    ]
    for bar, title in ((2, "BAR2: the shell"), (0, "BAR0: the QDMA")):
        elsewhere = "answers DECERR" if bar == 2 else "reads 0"
        lines += [
            "",
            f"## {title}",
            "",
            f"An address in no window {elsewhere}.",
            "",
            "| range | block | where no register is | on cards without it | what |",
            "|---|---|---|---|---|",
        ]
        lines += [window_row(w) for w in sorted(the_map.windows, key=lambda w: w.base) if w.bar == bar]
    return "\n".join(lines) + "\n"


def window_row(w: Window) -> str:
    name = w.name + (f" {w.index}" if w.presence else "")
    link = f"[{name}]({w.block}.md)" if w.block else name
    absent = "" if not w.presence else ("DECERR" if w.absent[0] == "decerr" else echo(w.absent))
    unmapped = f"0x{w.unmapped[1]:X}" if w.unmapped[0] == "value" else echo(w.unmapped)
    return f"| 0x{w.base:06X}–0x{w.base + w.size - 1:06X} | {link} | {unmapped} | {absent} | {cell(w.desc)} ({w.standing}: {cell(w.source)}) |"


def echo(answer: tuple) -> str:
    return f"0x{answer[1]:04X} and {answer[2]} address bits"


def block_page(the_map: Map, block: Block) -> str:
    places = [w for w in the_map.windows if w.block == block.name]
    where = ", ".join(f"BAR{w.bar} 0x{w.base:X}" for w in places)
    lines = [f"# {block.name}", "", block.desc, "", f"Base: {where}. Size: 0x{block.size:X} bytes. [All windows](README.md).", ""]
    lines += ["| offset | register | reset | what |", "|---|---|---|---|"]
    lines += [register_row(r) for r in block.registers]
    for register in block.registers:
        lines += ["", *register_section(register)]
    return "\n".join(lines) + "\n"


def offset_text(r: Register) -> str:
    return f"0x{r.offset:03X}" + (f" + 0x{r.stride:X}·n, n = 0…{r.count - 1}" if r.count > 1 else "")


def register_row(r: Register) -> str:
    return f"| {offset_text(r)} | [{r.name}](#{r.name.lower()}) | {reset_text(r)} | {cell(r.desc)} |"


def reset_text(r: Register) -> str:
    if r.reset_by_index:
        return "by element"
    if r.reset() is None:
        return "–" if r.reads_as is None else f"– (reads 0x{r.reads_as:X})"
    return f"0x{r.reset():X}"


def register_section(r: Register) -> list[str]:
    lines = [f"### {r.name}", "", f"{offset_text(r)}, {r.width} bits. {r.desc}", ""]
    lines += [f"*{r.standing}*: {r.source}."]
    if r.varies:
        lines += ["", f"The reset value varies with: {r.varies}."]
    if r.reset_by_index:
        lines += ["", "After reset: " + ", ".join(f"0x{v:08X}" for v in r.reset_by_index) + "."]
    lines += ["", "| bits | field | access | reset | what | standing |", "|---|---|---|---|---|---|"]
    return lines + [field_row(r, f) for f in r.fields]


def field_row(r: Register, f: Field) -> str:
    bits = str(f.lsb) if f.width == 1 else f"{f.lsb + f.width - 1}:{f.lsb}"
    reset = "–" if f.reset is None or f.access == "wo" else f"0x{f.reset:X}"
    own = f.standing if f.source == r.source else f"{f.standing}: {cell(f.source)}"
    return f"| {bits} | {f.name} | {ACCESS[f.access]} | {reset} | {cell(f.desc)} | {own} |"


def cell(text: str) -> str:
    return text.replace("|", "\\|")
