// Doorbells: from the offset that a function wrote to, to the absolute queue of an engine.
//
// The function map gives the queue's base and count. A write outside the map, or beyond the card's queues, is discarded and
// reported with range_fault_o; one to the interrupt ring's offset is ignored. A read of the completion doorbell answers the
// queue's CIDX, any other read 0. done_o comes 2 cycles after start_i or later: a write is done when the engine has taken
// it, a read with rdata_o, which holds until the next start.
//
// Source: qdma.md section 6; regs/rdl/doorbell.rdl.
`include "onic_assert.svh"
`default_nettype none
module qdma_doorbells
  import qdma_pkg::*;
#(
  parameter int unsigned NumQueue = 512
) (
  input  wire             clk,
  input  wire             rstn,
  // Access
  input  wire             start_i,                     // one cycle
  input  wire             write_i,                     // these hold until done_o
  input  wire func_t      func_i,
  input  wire      [14:0] offset_i,                    // from the first doorbell
  input  wire      [31:0] wdata_i,
  output logic            done_o,                      // one cycle
  output logic     [31:0] rdata_o,
  output logic            range_fault_o,               // one cycle
  // Function map: answer in the next cycle
  output logic            fmap_look_o,
  output func_t           fmap_func_o,
  input  wire      [11:0] fmap_base_i,
  input  wire      [11:0] fmap_count_i,
  // To the engines: H2C descriptors, C2H descriptors, completions
  output doorbell_t       bell_o,
  output logic      [2:0] bell_valid_o,
  input  wire       [2:0] bell_ready_i,
  // CIDX of a completion queue: answer in the next cycle
  output qid_t            cidx_qid_o,
  input  wire index_t     cidx_i
);
  // ---- Fault for the tests: 16, the relative queue is taken as the absolute one. ----
  logic fault_base;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_base = fault == 16;
`else
  assign fault_base = 1'b0;
`endif

  wire [11:0] relative = {1'b0, offset_i[14:4]};
  wire [12:0] absolute = {1'b0, relative} + (fault_base ? 13'd0 : {1'b0, fmap_base_i});
  wire        in_range = relative < fmap_count_i && 32'(absolute) < NumQueue;
  wire  [1:0] kind     = offset_i[3:2];

  assign fmap_look_o = start_i;
  assign fmap_func_o = func_i;

  typedef enum logic [2:0] {Idle, Check, Ring, Ask, Take} state_e;
  state_e state_q;

  always_ff @(posedge clk) begin
    done_o        <= 1'b0;
    range_fault_o <= 1'b0;
    if (!rstn) begin
      state_q      <= Idle;
      bell_valid_o <= '0;
    end else begin
      unique case (state_q)
        Idle: if (start_i) begin
          state_q <= Check;
          rdata_o <= '0;
        end
        Check: begin
          if (write_i && kind != 2'd0 && in_range) begin
            state_q      <= Ring;
            bell_valid_o <= {kind == BellCmptCidx, kind == BellC2hPidx, kind == BellH2cPidx};
          end else if (!write_i && kind == BellCmptCidx && in_range) begin
            state_q <= Ask;
          end else begin
            state_q       <= Idle;
            done_o        <= 1'b1;
            range_fault_o <= write_i && kind != 2'd0;
          end
        end
        Ring: if ((bell_valid_o & bell_ready_i) != '0) begin
          state_q      <= Idle;
          bell_valid_o <= '0;
          done_o       <= 1'b1;
        end
        Ask: state_q <= Take;
        Take: begin
          state_q <= Idle;
          rdata_o <= {16'd0, cidx_i};
          done_o  <= 1'b1;
        end
        default: state_q <= Idle;
      endcase
    end
  end

  always_ff @(posedge clk) begin
    if (state_q == Check) begin
      bell_o     <= '{kind: bell_e'(kind), qid: absolute[QidWidth-1:0], data: wdata_i};
      cidx_qid_o <= absolute[QidWidth-1:0];
    end
  end

  `ONIC_ASSERT(DoorbellOne_A, clk, rstn, !(start_i && state_q != Idle), "a doorbell came while another one was under way")
  wire unused_offset = ^offset_i[1:0];
endmodule
`default_nettype wire
