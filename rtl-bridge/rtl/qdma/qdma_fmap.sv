// The function map: which absolute queues the doorbells of a function mean.
//
// Two ports: commands of the context window (selector C, the function number in the queue field) and the look-up for a
// doorbell, answered in the next cycle. A function that was never written, or was cleared, has no queue. Only the fields
// are stored: word 0 bits 11:0 and word 1 bits 11:0.
//
// Source: qdma.md section 3.6.
`default_nettype none
module qdma_fmap
  import qdma_pkg::*;
(
  input  wire                   clk,
  input  wire                   rstn,
  // Command
  input  wire                   valid_i,
  input  wire context_command_t ctxt_i,
  output logic                  done_o,
  output logic          [255:0] rdata_o,
  // Look-up
  input  wire                   look_i,
  input  wire func_t            look_func_i,
  output logic           [11:0] look_base_o,           // absolute queue of relative queue 0
  output logic           [11:0] look_count_o
);
  logic [23:0] entry;

  qdma_context_store #(.Depth(1 << FuncWidth), .Width(24)) u_store (
    .clk, .rstn, .valid_i, .op_i(ctxt_i.op), .index_i(ctxt_i.qid[FuncWidth-1:0]),
    .data_i({ctxt_i.data[43:32], ctxt_i.data[11:0]}), .mask_i({ctxt_i.mask[43:32], ctxt_i.mask[11:0]}),
    .done_o, .rdata_o(entry), .look_i, .look_index_i(look_func_i), .look_o({look_count_o, look_base_o})
  );

  assign rdata_o = {212'd0, entry[23:12], 20'd0, entry[11:0]};

  wire unused_command = ^{ctxt_i.sel, ctxt_i.qid[QidWidth-1:FuncWidth], ctxt_i.data[255:44], ctxt_i.data[31:12],
                          ctxt_i.mask[255:44], ctxt_i.mask[31:12]};
endmodule
`default_nettype wire
