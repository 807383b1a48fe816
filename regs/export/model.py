"""The compiled map as plain data: what every writer needs, with inheritance of `source` and `standing` resolved.

SystemRDL knows registers and fields; this module adds the project's own rules (regs/rdl/properties.rdl) and refuses a
map that breaks them, so that no writer has to check again.
"""

from dataclasses import dataclass, field as dataclass_field
from pathlib import Path

from systemrdl import RDLCompiler
from systemrdl.node import AddrmapNode, FieldNode, MemNode, Node, RegfileNode, RegNode
from systemrdl.rdltypes import AccessType, OnWriteType

STANDINGS = ("measured", "vendor", "assumed", "ours")
WALKS = ("full", "reset_only", "none")

# Top addrmap and BAR. The order is that of every generated file.
TOPS = (("qdma", 0), ("shell", 2))


class MapError(Exception):
    """The map breaks a rule of this project; the message names the place."""


@dataclass
class Field:
    name: str
    lsb: int
    width: int
    access: str  # ro, rw, wo, w1c
    reset: int | None
    desc: str
    source: str
    standing: str


@dataclass
class Register:
    """One register, or an array of equal ones, at an offset within its block."""

    name: str
    offset: int
    count: int
    stride: int
    width: int  # bits: 32 or 64
    walk: str
    varies: str
    reads_as: int | None
    alias_of: str
    reset_by_index: list[int]
    desc: str
    source: str
    standing: str
    fields: list[Field]
    # Name of the index ("function") when elements exist only on some cards.
    presence: str

    def reset(self) -> int | None:
        """The whole register after reset, or None when no field can be read."""
        readable = [f for f in self.fields if f.access != "wo"]
        if not readable:
            return None
        return sum((f.reset or 0) << f.lsb for f in readable)


@dataclass
class Block:
    """A group of registers with one meaning, that may stand at several places."""

    name: str
    desc: str
    size: int
    registers: list[Register] = dataclass_field(default_factory=list)


@dataclass
class Window:
    """One place of a block, or of a window without registers, in a BAR."""

    name: str  # UPPER_CASE instance name
    block: str | None
    bar: int
    base: int
    size: int
    index: int
    presence: str  # "", "function", "port"
    stride: int  # to the next element; 0 for a single one
    desc: str
    source: str
    standing: str
    unmapped: tuple  # ("value", v) or ("echo", prefix, bits)
    absent: tuple  # ("decerr",) or ("echo", prefix, bits)
    plugin_bytes: int
    walk: str


@dataclass
class Map:
    blocks: dict[str, Block]
    windows: list[Window]


def compile_map(rdl: Path) -> tuple[list, Map]:
    """Compiles both BARs; returns the elaborated tops (for PeakRDL's exporters) and the map as data."""
    compiler = RDLCompiler()
    compiler.compile_file(str(rdl / "onic.rdl"), incl_search_paths=[str(rdl)])
    the_map = Map({}, [])
    tops = []
    for top, bar in TOPS:
        root = compiler.elaborate(top_def_name=top)
        tops.append(root)
        for child in root.top.children(unroll=True):
            add_child(the_map, child, bar, "", 0, 0)
    check_names(the_map)
    return tops, the_map


def add_child(the_map: Map, node: Node, bar: int, presence: str, index: int, stride: int) -> None:
    """Adds a window, or descends into a group of windows (a port)."""
    if node.is_array:
        presence = node.get_property("presence") or presence
        index, stride = node.current_idx[0], node.array_stride
    if isinstance(node, MemNode) or node.get_property("window_bytes"):
        add_window(the_map, node, bar, presence, index, stride)
        return
    for child in node.children(unroll=True):
        add_child(the_map, child, bar, presence, index, stride)


def add_window(the_map: Map, node: Node, bar: int, presence: str, index: int, stride: int) -> None:
    block = None
    if isinstance(node, AddrmapNode):
        block = node.orig_type_name
        if block not in the_map.blocks:
            the_map.blocks[block] = read_block(node, block)
    the_map.windows.append(
        Window(
            name=node.inst_name,
            block=block,
            bar=bar,
            base=node.absolute_address,
            size=node.get_property("window_bytes"),
            index=index,
            presence=presence,
            stride=stride,
            desc=sentence(node),
            source=inherited(node, "source"),
            standing=standing(node),
            unmapped=unmapped(node, index),
            absent=absent(node),
            plugin_bytes=node.get_property("plugin_bytes") or 0,
            walk=walk(node),
        )
    )


def unmapped(node: Node, index: int) -> tuple:
    bits = node.get_property("echo_bits")
    if bits is not None:
        step = node.get_property("echo_prefix_step") or 0
        return ("echo", node.get_property("echo_prefix") + step * index, bits)
    value = node.get_property("unmapped_read")
    if value is None:
        raise MapError(f"{node.get_path()}: neither unmapped_read nor echo_bits")
    return ("value", value)


def absent(node: Node) -> tuple:
    bits = node.get_property("absent_echo_bits")
    if bits is None:
        return ("decerr",)
    return ("echo", node.get_property("absent_echo_prefix"), bits)


def read_block(node: AddrmapNode, name: str) -> Block:
    block = Block(name, sentence(node), node.get_property("window_bytes"))
    for child in node.children(unroll=False):
        if isinstance(child, RegfileNode):
            for reg in child.registers(unroll=False):
                block.registers.append(read_register(reg, child))
        else:
            block.registers.append(read_register(child, None))
    block.registers.sort(key=lambda r: r.offset)
    return block


def read_register(node: RegNode, group: RegfileNode | None) -> Register:
    offset, count, stride, name, presence = node.raw_address_offset, 1, 4, node.inst_name, ""
    if node.is_array:
        count, stride = node.array_dimensions[0], node.array_stride
    if group is not None:
        if node.is_array:
            raise MapError(f"{node.get_path()}: an array within an array")
        offset += group.raw_address_offset
        count, stride = group.array_dimensions[0], group.array_stride
        presence = group.get_property("presence") or ""
        # Doorbells are named for themselves; a group of counters lends its name.
        name = f"{group.inst_name}_{name}" if presence else name
    by_index = node.get_property("reset_by_index") or []
    if by_index and len(by_index) != count:
        raise MapError(f"{node.get_path()}: reset_by_index has {len(by_index)} words for {count} registers")
    return Register(
        name=name,
        offset=offset,
        count=count,
        stride=stride,
        width=node.get_property("regwidth"),
        walk=walk(node),
        varies=node.get_property("varies") or "",
        reads_as=node.get_property("reads_as"),
        alias_of=node.get_property("alias_of") or "",
        reset_by_index=by_index,
        desc=sentence(node),
        source=inherited(node, "source"),
        standing=standing(node),
        fields=[read_field(f) for f in sorted(node.fields(), key=lambda f: f.lsb)],
        presence=presence,
    )


def read_field(node: FieldNode) -> Field:
    return Field(
        name=node.inst_name,
        lsb=node.lsb,
        width=node.width,
        access=access(node),
        reset=node.get_property("reset"),
        desc=sentence(node),
        source=inherited(node, "source"),
        standing=standing(node),
    )


def walk(node: Node) -> str:
    value = node.get_property("walk") or "full"
    if value not in WALKS:
        raise MapError(f"{node.get_path()}: walk is {value!r}, not one of {WALKS}")
    return value


def access(node: FieldNode) -> str:
    if node.get_property("onread") is not None:
        raise MapError(f"{node.get_path()}: reads with side effects have no access kind here yet")
    on_write = node.get_property("onwrite")
    if on_write == OnWriteType.woclr:
        return "w1c"
    if on_write is not None:
        raise MapError(f"{node.get_path()}: onwrite = {on_write} has no access kind here yet")
    return {AccessType.r: "ro", AccessType.rw: "rw", AccessType.w: "wo"}[node.get_property("sw")]


def sentence(node: Node) -> str:
    desc = node.get_property("desc")
    if not desc or not desc.rstrip().endswith((".", ")")):
        raise MapError(f"{node.get_path()}: desc is missing or no sentence")
    return " ".join(desc.split())


def inherited(node: Node, name: str) -> str:
    """The property here or at the nearest parent that has it."""
    at = node
    while at is not None and not at.__class__.__name__ == "RootNode":
        value = at.get_property(name)
        if value:
            return value
        at = at.parent
    raise MapError(f"{node.get_path()}: no {name}")


def standing(node: Node) -> str:
    value = inherited(node, "standing")
    if value not in STANDINGS:
        raise MapError(f"{node.get_path()}: standing is {value!r}, not one of {STANDINGS}")
    return value


def check_names(the_map: Map) -> None:
    for block in the_map.blocks.values():
        seen = set()
        for register in block.registers:
            if register.name in seen:
                raise MapError(f"{block.name}: two registers named {register.name}")
            seen.add(register.name)
        for register in block.registers:
            if register.alias_of and register.alias_of not in seen:
                raise MapError(f"{block.name}.{register.name}: alias of unknown {register.alias_of}")
