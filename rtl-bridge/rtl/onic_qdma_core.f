// Files of the QDMA engine that the shell does not have, by levels: a file uses only what stands above its level. Named by
// onic_qdma.f and onic_card.f, which bring the rest; paths are relative to this folder.

// Level 0: types of the engine
qdma/qdma_pkg.sv

// Level 1: types within a part
qdma/qdma_desc_pkg.sv
qdma/qdma_c2h_pkg.sv
qdma/qdma_completion_pkg.sv
qdma/qdma_h2c_pkg.sv

// Level 2: pieces
qdma/qdma_context_mem.sv
qdma/qdma_context_store.sv
qdma/qdma_queue_state.sv

// Level 3: parts of the blocks
qdma/qdma_csr.sv
qdma/qdma_error_tree.sv
qdma/qdma_fmap.sv
qdma/qdma_context_window.sv
qdma/qdma_doorbells.sv
qdma/qdma_desc_control.sv
qdma/qdma_desc_state.sv
qdma/qdma_desc_want.sv
qdma/qdma_desc_fetch.sv
qdma/qdma_desc_tags.sv
qdma/qdma_desc_store.sv
qdma/qdma_prefetch_context.sv
qdma/qdma_c2h_need.sv
qdma/qdma_c2h_decide.sv
qdma/qdma_c2h_buffers.sv
qdma/qdma_c2h_scatter.sv
qdma/qdma_completion_join.sv
qdma/qdma_completion_update.sv
qdma/qdma_moderation.sv
qdma/qdma_timer_wheel.sv
qdma/qdma_line_buffer.sv
qdma/qdma_line_age.sv
qdma/qdma_h2c_schedule.sv
qdma/qdma_h2c_tags.sv
qdma/qdma_h2c_reorder.sv
qdma/qdma_h2c_pack.sv
qdma/qdma_h2c_read.sv
qdma/qdma_h2c_stream.sv
qdma/qdma_h2c_writeback.sv

// Level 4: blocks
qdma/qdma_registers.sv
qdma/qdma_desc_engine.sv
qdma/qdma_c2h_write.sv
qdma/qdma_completion.sv
qdma/qdma_h2c_engine.sv
qdma/qdma_read_arbiter.sv
qdma/qdma_write_arbiter.sv
qdma/qdma_msix.sv

// Level 5: the engine
qdma/qdma_engine.sv
