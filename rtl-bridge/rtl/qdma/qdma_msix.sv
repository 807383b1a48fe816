// Direct MSI-X: interrupts of queues and of the error tree, one at a time, to the function's table in front of the card.
//
// An interrupt is a vector of a function's table; one outside the table is dropped, and for a queue that is a fault. The
// error interrupt goes first, the two sources of queue interrupts take turns. One interrupt every second cycle; outputs
// are registers. The tables themselves (masks, pending bits, messages) are PCI's, in front of the card.
//
// Source: qdma.md sections 1 and 7.4.
`include "onic_assert.svh"
`default_nettype none
module qdma_msix
  import qdma_pkg::*;
#(
  parameter int unsigned NumFunc = 1,                  // physical functions, 1 to 4; others have no table
  parameter bit [3:0][10:0] Vectors = {11'd9, 11'd9, 11'd9, 11'd10}    // table sizes, function 3 first
) (
  input  wire                   clk,
  input  wire                   rstn,
  // Interrupts of queues: 0 completion, 1 H2C
  input  wire             [1:0] irq_valid_i,
  input  wire interrupt_t [1:0] irq_i,
  output logic            [1:0] irq_ready_o,
  // Error interrupt
  input  wire                   error_valid_i,         // one cycle, only while ready
  input  wire            [11:0] error_func_i,
  input  wire            [10:0] error_vector_i,
  output logic                  error_ready_o,
  // Out
  output logic                  irq_valid_o,
  output func_t                 irq_func_o,
  output logic           [10:0] irq_vector_o,
  input  wire                   irq_ready_i,
  output fault_t                fault_o,
  output logic                  idle_o                 // no interrupt is inside
);
  `ONIC_ASSERT_PARAM(NumFunc, NumFunc >= 1 && NumFunc <= 4, "NumFunc must be 1 to 4")

  function automatic logic in_table(input logic [11:0] func, input logic [10:0] vector);
    return func < 12'(NumFunc) && vector < Vectors[func[1:0]];
  endfunction

  // ---- The error interrupt waits in a place of its own ----
  logic        error_q;
  logic  [1:0] error_func_q;
  logic [10:0] error_vector_q;
  assign error_ready_o = !error_q;
  assign idle_o        = !error_q && !irq_valid_o;

  // ---- Choice ----
  logic       turn_q;
  interrupt_t chosen;
  wire        choice = irq_valid_i[turn_q] ? turn_q : !turn_q;
  wire        take   = !irq_valid_o && !error_q && irq_valid_i != '0;
  wire        good   = in_table({4'd0, chosen.func}, chosen.vector);
  assign chosen      = irq_i[choice];
  assign irq_ready_o = !irq_valid_o && !error_q ? (choice ? 2'b10 : 2'b01) : 2'b00;

  always_ff @(posedge clk) begin
    fault_o.kind <= FaultNone;
    if (!rstn) begin
      irq_valid_o <= 1'b0;
      error_q     <= 1'b0;
      turn_q      <= 1'b0;
    end else begin
      if (irq_valid_o && irq_ready_i) irq_valid_o <= 1'b0;
      if (error_valid_i) error_q <= in_table(error_func_i, error_vector_i);
      if (!irq_valid_o && error_q) begin
        irq_valid_o <= 1'b1;
        error_q     <= 1'b0;
      end
      if (take) begin
        turn_q      <= !choice;
        irq_valid_o <= good;
        if (!good) fault_o <= '{kind: FaultMsi, h2c: choice, qid: chosen.qid, default: '0};
      end
    end
  end

  always_ff @(posedge clk) begin
    if (error_valid_i) begin
      error_func_q   <= error_func_i[1:0];
      error_vector_q <= error_vector_i;
    end
    if (!irq_valid_o && error_q) begin
      irq_func_o   <= {6'd0, error_func_q};
      irq_vector_o <= error_vector_q;
    end else if (take) begin
      irq_func_o   <= chosen.func;
      irq_vector_o <= chosen.vector;
    end
  end

  `ONIC_ASSERT(ErrorReady_A, clk, rstn, !(error_valid_i && error_q), "an error interrupt came while one was waiting")
endmodule
`default_nettype wire
