// The window to context memory: IND_CTXT_DATA, IND_CTXT_MASK and IND_CTXT_CMD, and the commands that they start.
//
// Writing CMD latches data and mask and hands the command to the context's owner; BUSY is 1 until it is done. After CLR, WR
// or INV of a queue's context (selectors 0 to 7 and B) it is done only when DMA that was under way at that time has ended:
// fence_o asks the units, then flush_o the arbiter between them and host memory. RD puts the context into DATA; other
// commands leave DATA as it was. Writes of DATA or MASK during a command count for the next one.
//
// Refused, without effect but CMD's own fields (nothing at all while busy), and reported with refused_o: a queue that does
// not exist, an unknown selector, a function above 255 for FMAP, the timer selector with another operation than INV, which
// goes to the owner of completion contexts.
//
// rdata_o is valid in the cycle after rd_i, 0 otherwise and for words of other blocks. Source: qdma.md section 3.
`include "onic_assert.svh"
`default_nettype none
module qdma_context_window
  import qdma_pkg::*;
  import onic_regs_pkg::*;
#(
  parameter  int unsigned NumQueue = 512,
  localparam int unsigned Targets  = 6                 // C2H desc, H2C desc, completion, prefetch, FMAP, stored only
) (
  input  wire                    clk,
  input  wire                    rstn,
  // Register access
  input  wire                    wr_i,                 // one cycle
  input  wire                    rd_i,                 // one cycle
  input  wire             [13:0] addr_i,               // below 0x3000
  input  wire             [31:0] wdata_i,
  output logic            [31:0] rdata_o,
  output logic                   refused_o,            // a command was refused, one cycle
  // To the owners of contexts
  output context_command_t       ctxt_o,
  output logic     [Targets-1:0] ctxt_valid_o,
  input  wire      [Targets-1:0] ctxt_done_i,
  input  wire [Targets-1:0][255:0] ctxt_rdata_i,
  // Ends of DMA
  output logic                   fence_o,              // one cycle
  input  wire                    fence_busy_i,         // counts from the second cycle after fence_o on
  output logic                   flush_o,              // one cycle
  input  wire                    flush_busy_i,         // as fence_busy_i
  output logic                   idle_o                // no command is under way
);
  localparam logic [13:0] DataBase = QDMA_CSR_IND_CTXT_DATA[13:0];
  localparam logic [13:0] MaskBase = QDMA_CSR_IND_CTXT_MASK[13:0];
  localparam logic [13:0] Command  = QDMA_CSR_IND_CTXT_CMD[13:0];
  localparam logic  [2:0] TargetFmap = 3'd4, TargetStore = 3'd5;

  // ---- Fault for the tests: 17, a command is done before DMA has ended. ----
  logic fault_fence;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_fence = fault == 17;
`else
  assign fault_fence = 1'b0;
`endif

  // ---- DATA, MASK and CMD ----
  logic [7:0][31:0] data_q, mask_q;
  logic      [19:1] command_q;                         // selector, operation, queue as written
  logic             busy_q;

  wire [13:0] word      = {addr_i[13:2], 2'd0};
  wire        in_data   = word >= DataBase && word < DataBase + 14'd32;
  wire        in_mask   = word >= MaskBase && word < MaskBase + 14'd32;
  wire  [2:0] data_word = 3'((word - DataBase) >> 2);
  wire  [2:0] mask_word = 3'((word - MaskBase) >> 2);

  // ---- What a written command asks for ----
  wire context_op_e op  = context_op_e'(wdata_i[6:5]);
  wire        [3:0] sel = wdata_i[4:1];
  wire       [12:0] qid = wdata_i[19:7];
  logic             legal;
  logic       [2:0] target;

  always_comb begin
    legal  = 32'(qid) < NumQueue;
    target = TargetStore;
    unique case (sel)
      4'h0, 4'h2, 4'h4:       target = 3'd0;
      4'h1, 4'h3, 4'h5:       target = 3'd1;
      4'h6:                   target = 3'd2;
      4'h7:                   target = 3'd3;
      4'h8, 4'h9, 4'hA, 4'hD: target = TargetStore;
      4'hB: begin
        target = 3'd2;
        legal  = 32'(qid) < NumQueue && op == CtxtInvalidate;
      end
      4'hC: begin
        target = TargetFmap;
        legal  = qid < 13'(1 << FuncWidth);
      end
      default:                legal  = 1'b0;
    endcase
  end

  wire write_command = wr_i && word == Command;
  wire start         = write_command && !busy_q && legal;

  assign idle_o = !busy_q;

  // ---- One command ----
  typedef enum logic [2:0] {Idle, Run, Fence, FenceSettle, FenceWait, FlushSettle, FlushWait} state_e;
  state_e     state_q;
  logic [2:0] target_q;
  wire        done   = ctxt_done_i[target_q];
  wire        fenced = target_q < TargetFmap && ctxt_o.op != CtxtRead;

  always_ff @(posedge clk) begin
    refused_o <= 1'b0;
    fence_o   <= 1'b0;
    flush_o   <= 1'b0;
    if (!rstn) begin
      state_q      <= Idle;
      busy_q       <= 1'b0;
      ctxt_valid_o <= '0;
      command_q    <= '0;
    end else begin
      if (write_command && !busy_q) command_q <= wdata_i[19:1];
      refused_o <= write_command && (busy_q || !legal);
      unique case (state_q)
        Idle: if (start) begin
          state_q      <= Run;
          busy_q       <= 1'b1;
          ctxt_valid_o <= Targets'(1) << target;
        end
        Run: if (done) begin
          ctxt_valid_o <= '0;
          state_q      <= fenced ? Fence : Idle;
          busy_q       <= fenced;
          fence_o      <= fenced;
        end
        Fence: begin                                   // fence_o is high
          state_q <= fault_fence ? Idle : FenceSettle;
          busy_q  <= !fault_fence;
        end
        FenceSettle: state_q <= FenceWait;
        FenceWait: if (!fence_busy_i) begin
          state_q <= FlushSettle;
          flush_o <= 1'b1;
        end
        FlushSettle: if (!flush_o) state_q <= FlushWait;
        FlushWait: if (!flush_busy_i) begin
          state_q <= Idle;
          busy_q  <= 1'b0;
        end
        default: state_q <= Idle;
      endcase
    end
  end

  always_ff @(posedge clk) begin
    if (start) begin
      target_q <= target;
      ctxt_o   <= '{op: op, sel: sel, qid: qid[QidWidth-1:0], data: data_q, mask: mask_q};
    end
  end

  always_ff @(posedge clk) begin
    if (!rstn) begin
      data_q <= '0;
      mask_q <= '0;
    end else begin
      if (wr_i && in_data) data_q[data_word] <= wdata_i;
      if (wr_i && in_mask) mask_q[mask_word] <= wdata_i;
      if (state_q == Run && done && ctxt_o.op == CtxtRead) data_q <= ctxt_rdata_i[target_q];
    end
  end

  // ---- Read ----
  always_ff @(posedge clk) begin
    rdata_o <= '0;
    if (rd_i) begin
      if (in_data)              rdata_o <= data_q[data_word];
      else if (in_mask)         rdata_o <= mask_q[mask_word];
      else if (word == Command) rdata_o <= {12'd0, command_q, busy_q};
    end
  end

  `ONIC_ASSERT(ContextDone_A, clk, rstn, (ctxt_done_i & ~ctxt_valid_o) == '0, "an owner finished a command that it has not")

  wire unused_bits = ^{addr_i[1:0], wdata_i[31:20], wdata_i[0], qid[12:QidWidth]};
endmodule
`default_nettype wire
