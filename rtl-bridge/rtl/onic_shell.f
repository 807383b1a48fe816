// File list of the shell, by levels: a file uses only what stands above its level. Read it with `verilator -F`, which takes
// paths relative to this file. Top module: onic_shell. A user's plugin replaces box/p2p: its folders go first on the include
// path, its files on the command line.
+incdir+common
+incdir+box/p2p/box_250mhz
+incdir+box/p2p/box_322mhz
top/onic_shell.vlt

// Level 0: primitives and packages
gen/onic_regs_pkg.sv
common/cdc_sync.sv
common/cdc_reset.sv
common/powerup_reset.sv
common/cdc_gray.sv
common/sync_fifo.sv
common/counter64.sv
common/axis_frame_mux.sv
common/axil_xbar.sv
sys/mod_reset.sv
sys/axil_echo.sv
adapter/packet_adapter_pkg.sv

// Level 1: composed of level 0
common/async_fifo.sv
common/packet_fifo.sv
common/axil_regs.sv

// Level 2: parts of the blocks
sys/system_config.sv
adapter/packet_adapter_rx.sv
adapter/packet_adapter_tx.sv
adapter/packet_adapter_register.sv
cmac/cmac_rx.sv
cmac/cmac_tx.sv
cmac/cmac_stats.sv
cmac/cmac_register.sv
box/p2p/p2p_address_map.sv
box/p2p/p2p_250mhz.sv
qdma_subsystem/qdma_stream_reset.sv
qdma_subsystem/rss_hash.sv
qdma_subsystem/rss_indirection.sv
qdma_subsystem/qdma_function_regs.sv
qdma_subsystem/qdma_common_regs.sv
qdma_subsystem/qdma_function.sv
qdma_subsystem/qdma_h2c.sv
qdma_subsystem/qdma_c2h.sv

// Level 3: blocks
adapter/packet_adapter.sv
cmac/cmac_subsystem.sv
box/box_250mhz.sv
box/box_322mhz.sv
qdma_subsystem/qdma_subsystem.sv

// Level 4: the shell
top/onic_shell.sv
