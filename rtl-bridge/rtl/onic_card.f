// File list of the card: the shell, the QDMA engine, and the top that joins them. Read it with `verilator -F` in this folder;
// paths are relative to it. Top module: onic_card.
-f onic_shell.f
-f onic_qdma_core.f
top/onic_card.sv
