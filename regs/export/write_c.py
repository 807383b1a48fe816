"""Writes the map as a C header, by PeakRDL: masks and positions of every field, and a struct for every block."""

import tempfile
from pathlib import Path

from peakrdl_cheader.exporter import CHeaderExporter


def header(tops: list, provenance: str) -> str:
    """Both BARs in one file; each keeps PeakRDL's own include guard."""
    parts = ["".join(f"// {line}\n" for line in provenance.splitlines())]
    with tempfile.TemporaryDirectory() as folder:
        for top in tops:
            # PeakRDL makes the guard of the file's name.
            file = Path(folder) / f"onic_{top.top.inst_name}_regs.h"
            CHeaderExporter().export(top.top, str(file))
            parts.append(file.read_text(encoding="utf-8"))
    return "\n".join(parts)
