// Two writers share one write channel of host memory, and each one's interrupts stay behind its writes.
//
// Beats take turns; a beat without `last` keeps the channel for its writer. A beat spends one cycle here, in the register
// that the channel shows, so that 1 beat a cycle passes. An interrupt that a writer offers is held until the beat that the
// register had of that writer at that time was taken by host memory; later beats do not hold it. flush_i asks for the
// register's beat: flush_busy_o is high from the next cycle until it was taken.
`include "onic_assert.svh"
`default_nettype none
module qdma_write_arbiter
  import qdma_pkg::*;
(
  input  wire                   clk,
  input  wire                   rstn,
  // Writers
  input  wire             [1:0] wr_valid_i,
  input  wire write_t           wr_i [2],
  output logic            [1:0] wr_ready_o,
  // Channel, registers
  output logic                  wr_valid_o,
  output write_t                wr_o,
  input  wire                   wr_ready_i,
  // Interrupts of the same writers, in and out; the payload goes past
  input  wire             [1:0] irq_valid_i,
  output logic            [1:0] irq_ready_o,
  output logic            [1:0] irq_valid_o,
  input  wire             [1:0] irq_ready_i,
  // Has what was accepted before been taken?
  input  wire                   flush_i,               // one cycle
  output logic                  flush_busy_o
);
  // ---- Writes ----
  logic turn_q, locked_q, owner_q;                     // owner_q: whose beat the register has, or had last
  wire  choice = locked_q ? owner_q : wr_valid_i[turn_q] ? turn_q : !turn_q;
  wire  free   = !wr_valid_o || wr_ready_i;
  wire  take   = free && wr_valid_i[choice];
  assign wr_ready_o = free ? (choice ? 2'b10 : 2'b01) : 2'b00;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      wr_valid_o <= 1'b0;
      turn_q     <= 1'b0;
      locked_q   <= 1'b0;
      owner_q    <= 1'b0;
    end else begin
      if (free) wr_valid_o <= take;
      if (take) begin
        turn_q   <= !choice;
        owner_q  <= choice;
        locked_q <= !(choice ? wr_i[1].last : wr_i[0].last);
      end
    end
  end

  always_ff @(posedge clk) begin
    if (take && !choice) wr_o <= wr_i[0];
    if (take && choice)  wr_o <= wr_i[1];
  end

  // ---- Interrupts ----
  logic [1:0] passed_q;                                // nothing older than the interrupt on offer is left here
  wire  [1:0] holds  = {wr_valid_o && owner_q, wr_valid_o && !owner_q};
  wire  [1:0] may_go = passed_q | ~holds;
  assign irq_valid_o = irq_valid_i & may_go;
  assign irq_ready_o = irq_ready_i & may_go;

  always_ff @(posedge clk) begin
    if (!rstn) passed_q <= '0;
    else       passed_q <= irq_valid_i & ~(irq_valid_o & irq_ready_i) & (may_go | {2{wr_ready_i}});
  end

  // ---- Flush ----
  always_ff @(posedge clk) begin
    if (!rstn)                                  flush_busy_o <= 1'b0;
    else if (flush_i)                           flush_busy_o <= wr_valid_o && !wr_ready_i;
    else if (wr_ready_i)                        flush_busy_o <= 1'b0;
  end
endmodule
`default_nettype wire
