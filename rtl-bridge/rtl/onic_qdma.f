// File list of the QDMA engine alone. Read it with `verilator -F` in this folder; paths are relative to it. Top module:
// qdma_engine.
+incdir+common
gen/onic_regs_pkg.sv
common/sync_fifo.sv
-f onic_qdma_core.f
