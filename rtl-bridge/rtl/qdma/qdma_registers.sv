// BAR0 of the QDMA: one register access at a time to the block that owns the offset.
//
//   0x00000…0x02FFF  qdma_csr, qdma_error_tree, qdma_context_window; an offset without a register reads 0
//   0x03000…0x17FFF  nothing: reads 0, and the access is a target error
//   0x18000…0x1FFFF  qdma_doorbells
//   0x20000…0x3FFFF  nothing: reads 0 (the MSI-X table stands in front of the card)
//
// An access is taken while reg_ready_o is high; a read answers with one cycle of reg_rvalid_o. A register takes 3 cycles, a
// doorbell 5 or more, as its engine may let it wait. A write has had its effect before the next access is taken; a context
// command has only started, and says with BUSY when it is done.
//
// Source: qdma.md sections 2 to 4, 6 and 8.
`include "onic_assert.svh"
`default_nettype none
module qdma_registers
  import qdma_pkg::*;
  import onic_regs_pkg::*;
#(
  parameter int unsigned NumQueue = 512,               // power of two, 1 to 2048
  parameter int unsigned NumFunc  = 1,                 // physical functions, 1 to 4
  parameter int unsigned Sources  = 1                  // of faults
) (
  input  wire                   clk,
  input  wire                   rstn,
  // Register port
  input  wire                   reg_valid_i,
  output logic                  reg_ready_o,
  input  wire                   reg_write_i,
  input  wire func_t            reg_func_i,
  input  wire            [17:0] reg_addr_i,
  input  wire            [31:0] reg_wdata_i,
  output logic                  reg_rvalid_o,
  output logic           [31:0] reg_rdata_o,
  // Settings
  output config_t               config_o,
  // Contexts: 0 C2H descriptors, 1 H2C descriptors, 2 completion, 3 prefetch
  output context_command_t      ctxt_o,
  output logic            [3:0] ctxt_valid_o,
  input  wire             [3:0] ctxt_done_i,
  input  wire      [3:0][255:0] ctxt_rdata_i,
  output logic                  fence_o,
  input  wire                   fence_busy_i,
  output logic                  flush_o,
  input  wire                   flush_busy_i,
  // Doorbells: 0 H2C descriptors, 1 C2H descriptors, 2 completion
  output doorbell_t             bell_o,
  output logic            [2:0] bell_valid_o,
  input  wire             [2:0] bell_ready_i,
  output qid_t                  cidx_qid_o,
  input  wire index_t           cidx_i,
  // Faults, and the error interrupt (one cycle; ready says that it will be taken)
  input  wire fault_t           fault_i [Sources],
  output logic                  error_irq_valid_o,
  output logic           [11:0] error_irq_func_o,
  output logic           [10:0] error_irq_vector_o,
  input  wire                   error_irq_ready_i,
  // Counter pulses
  input  wire                   count_completion_in_i,
  input  wire                   count_completion_out_i,
  input  wire                   count_completion_dropped_i,
  input  wire                   count_status_out_i,
  output logic                  idle_o                 // no access, command, fence or error interrupt under way
);
  `ONIC_ASSERT_PARAM(NumQueue, NumQueue >= 1 && NumQueue <= 2048 && (NumQueue & (NumQueue - 1)) == 0,
                     "NumQueue must be a power of two from 1 to 2048")

  localparam logic [17:0] CsrEnd  = 18'h3000;
  localparam logic [17:0] BellBase = QDMA_DOORBELL_BASE[17:0];
  localparam logic [17:0] BellEnd  = BellBase + QDMA_DOORBELL_BYTES[17:0];

  // ---- The access under way ----
  typedef enum logic [1:0] {Idle, Decode, Answer} state_e;
  state_e      state_q;
  logic        write_q;
  func_t       func_q;
  logic [17:0] addr_q;
  logic [31:0] wdata_q;

  wire is_csr  = addr_q < CsrEnd;
  wire is_bell = addr_q >= BellBase && addr_q < BellEnd;
  wire in_hole = addr_q >= CsrEnd && addr_q < BellBase;
  wire csr_wr  = state_q == Decode && is_csr && write_q;
  wire csr_rd  = state_q == Decode && is_csr && !write_q;

  logic [31:0] csr_rdata, error_rdata, window_rdata, bell_rdata;
  logic        bell_done;
  wire         answer = state_q == Answer && (!is_bell || bell_done);

  always_ff @(posedge clk) begin
    reg_rvalid_o <= 1'b0;
    if (!rstn) begin
      state_q     <= Idle;
      reg_ready_o <= 1'b0;
    end else begin
      unique case (state_q)
        Idle: begin
          reg_ready_o <= 1'b1;
          if (reg_valid_i && reg_ready_o) begin
            reg_ready_o <= 1'b0;
            state_q     <= Decode;
          end
        end
        Decode: state_q <= Answer;
        Answer: if (answer) begin
          reg_rvalid_o <= !write_q;
          reg_ready_o  <= 1'b1;
          state_q      <= Idle;
        end
        default: state_q <= Idle;
      endcase
    end
  end

  always_ff @(posedge clk) begin
    if (reg_valid_i && reg_ready_o) begin
      write_q <= reg_write_i;
      func_q  <= reg_func_i;
      addr_q  <= reg_addr_i;
      wdata_q <= reg_wdata_i;
    end
    if (answer) reg_rdata_o <= csr_rdata | error_rdata | window_rdata | (is_bell ? bell_rdata : '0);
  end

  // ---- Blocks ----
  logic command_refused, range_fault, errors_idle, window_idle;
  assign idle_o = state_q == Idle && reg_ready_o && !reg_rvalid_o && !command_refused && !range_fault && errors_idle
                  && window_idle;

  qdma_csr #(.NumQueue(NumQueue), .NumFunc(NumFunc)) u_csr (
    .clk, .rstn, .wr_i(csr_wr), .rd_i(csr_rd), .addr_i(addr_q[13:0]), .wdata_i(wdata_q), .func_i(func_q),
    .rdata_o(csr_rdata), .config_o, .count_completion_in_i, .count_completion_out_i,
    .count_completion_dropped_i, .count_status_out_i
  );

  qdma_error_tree #(.Sources(Sources)) u_errors (
    .clk, .rstn, .wr_i(csr_wr), .rd_i(csr_rd), .addr_i(addr_q[13:0]), .wdata_i(wdata_q), .rdata_o(error_rdata),
    .fault_i, .csr_unmapped_i(state_q == Decode && in_hole), .qid_range_i(range_fault),
    .access_func_i(func_q), .access_addr_i(addr_q[16:0]),
    .command_refused_i(command_refused), .command_func_i(func_q),
    .irq_valid_o(error_irq_valid_o), .irq_func_o(error_irq_func_o), .irq_vector_o(error_irq_vector_o),
    .irq_ready_i(error_irq_ready_i), .idle_o(errors_idle)
  );

  logic          fmap_valid, fmap_done, store_valid, store_done;
  logic  [255:0] fmap_rdata, store_rdata;

  qdma_context_window #(.NumQueue(NumQueue)) u_window (
    .clk, .rstn, .wr_i(csr_wr), .rd_i(csr_rd), .addr_i(addr_q[13:0]), .wdata_i(wdata_q), .rdata_o(window_rdata),
    .refused_o(command_refused), .ctxt_o, .ctxt_valid_o({store_valid, fmap_valid, ctxt_valid_o}),
    .ctxt_done_i({store_done, fmap_done, ctxt_done_i}), .ctxt_rdata_i({store_rdata, fmap_rdata, ctxt_rdata_i}),
    .fence_o, .fence_busy_i, .flush_o, .flush_busy_i,
    .idle_o(window_idle)
  );

  logic        fmap_look;
  func_t       fmap_func;
  logic [11:0] fmap_base, fmap_count;
  qdma_fmap u_fmap (
    .clk, .rstn, .valid_i(fmap_valid), .ctxt_i(ctxt_o), .done_o(fmap_done), .rdata_o(fmap_rdata),
    .look_i(fmap_look), .look_func_i(fmap_func), .look_base_o(fmap_base), .look_count_o(fmap_count)
  );

  // Selectors 8, 9, A and D, in this order.
  localparam int unsigned StoreWidth = $clog2(4 * NumQueue);
  wire [StoreWidth-1:0] store_index = StoreWidth'({ctxt_o.qid, ctxt_o.sel[2] || ctxt_o.sel[1], ctxt_o.sel[0]});
  logic [255:0] store_look;
  qdma_context_store #(.Depth(4 * NumQueue), .Width(256)) u_store (
    .clk, .rstn, .valid_i(store_valid), .op_i(ctxt_o.op), .index_i(store_index), .data_i(ctxt_o.data),
    .mask_i(ctxt_o.mask), .done_o(store_done), .rdata_o(store_rdata), .look_i(1'b0), .look_index_i('0), .look_o(store_look)
  );
  wire unused_store = ^store_look;

  qdma_doorbells #(.NumQueue(NumQueue)) u_bells (
    .clk, .rstn, .start_i(state_q == Decode && is_bell), .write_i(write_q), .func_i(func_q),
    .offset_i(15'(addr_q - BellBase)), .wdata_i(wdata_q), .done_o(bell_done), .rdata_o(bell_rdata),
    .range_fault_o(range_fault), .fmap_look_o(fmap_look), .fmap_func_o(fmap_func), .fmap_base_i(fmap_base),
    .fmap_count_i(fmap_count), .bell_o, .bell_valid_o, .bell_ready_i, .cidx_qid_o, .cidx_i
  );

  `ONIC_ASSERT_STABLE(RegStable_A, clk, rstn, reg_valid_i, reg_ready_o,
                      {reg_write_i, reg_func_i, reg_addr_i, reg_wdata_i}, 59, "a register access changed while it waited")
endmodule
`default_nettype wire
