// Which lines of completion entries have waited long enough.
//
// A line waits from its first entry on. At the age, tick count * tick value cycles of C2H_COALESCE (a product of 0: 64), it is
// offered for writing; after 1024 cycles more it is urgent. The user may so leave lines to fill up while every cycle brings an
// entry, and no entry stays back for ever.
// Queues whose line began wait in one FIFO, each at most once. When a queue's turn comes and its line was written meanwhile,
// it falls out; if a younger line waits there, it goes to the FIFO's end, so that a line can be offered up to an age late.
// A flush offers all lines that wait at its pulse, urgent.
// Throughput: one queue looked at a cycle. Time stands still while no queue waits.
//
// Source: qdma.md 4 (0xB50). The vendor's buffer for lines is shared by queues; this one has a line for each.
`include "onic_assert.svh"
`default_nettype none
module qdma_line_age #(
  parameter  int unsigned NumQueue = 512,             // a power of two, at least 2
  localparam int unsigned QueueWidth = $clog2(NumQueue)
) (
  input  wire                  clk,
  input  wire                  rstn,                  // synchronous, active low
  input  wire           [11:0] tick_count_i,
  input  wire           [11:0] tick_value_i,          // cycles
  // A queue's line got its first entry, or has none left
  input  wire                  start_i,
  input  wire                  end_i,
  input  wire [QueueWidth-1:0] queue_i,
  // Lines to write; whether one is offered never depends on ready
  output logic                 line_valid_o,
  output logic                 line_urgent_o,
  output logic [QueueWidth-1:0] line_queue_o,
  input  wire                  line_ready_i,
  // Flush
  input  wire                  flush_i,
  output logic                 flush_busy_o,          // from the next cycle until each such line was taken
  output logic                 idle_o                 // no line waits
);
  localparam int unsigned DefaultAge = 64;            // cycles
  localparam int unsigned Patience   = 1024;          // cycles from due to urgent

  typedef logic [QueueWidth-1:0] queue_index_t;
  typedef logic           [31:0] cycle_t;             // compared by sign: an age has 24 bits
  typedef struct packed {
    queue_index_t index;
    cycle_t       due;
  } wait_t;

  wait_t               wait_mem  [NumQueue];          // a FIFO: cannot overflow, a queue is in it once
  cycle_t              start_mem [NumQueue];          // of the queue's line, void unless held
  logic [NumQueue-1:0] held_q, waits_q;
  queue_index_t        wr_ptr_q, rd_ptr_q;
  logic [QueueWidth:0] count_q, flush_left_q;
  cycle_t              now_q, age_q;

  wire [23:0] product = 24'(tick_count_i) * 24'(tick_value_i);

  // ---- The head of the FIFO
  wait_t  head;
  cycle_t over, renewed;                              // cycles since due; due of the line that waits now
  logic   push, fall_out, renew;

  always_comb begin
    head          = '0;
    over          = '0;
    renewed       = '0;
    fall_out      = 1'b0;
    renew         = 1'b0;
    line_valid_o  = 1'b0;
    line_urgent_o = 1'b0;
    push          = start_i && !waits_q[queue_i];
    if (count_q != '0) begin
      head    = wait_mem[rd_ptr_q];
      over    = now_q - head.due;
      renewed = start_mem[head.index] + age_q;
      if ((!over[31] || flush_left_q != '0) && !(start_i && queue_i == head.index)) begin
        if (!held_q[head.index]) begin
          fall_out = 1'b1;
        end else if (flush_left_q == '0 && !over[31] && $signed(now_q - renewed) < 0) begin
          renew = !push;
        end else begin
          line_valid_o  = 1'b1;
          line_urgent_o = flush_left_q != '0 || over >= cycle_t'(Patience);
        end
      end
    end
  end

  wire pop = fall_out || (line_valid_o && line_ready_i);

  assign line_queue_o = head.index;
  assign flush_busy_o = flush_left_q != '0;
  assign idle_o       = count_q == '0;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      held_q       <= '0;
      waits_q      <= '0;
      wr_ptr_q     <= '0;
      rd_ptr_q     <= '0;
      count_q      <= '0;
      flush_left_q <= '0;
      now_q        <= '0;
      age_q        <= cycle_t'(DefaultAge);
    end else begin
      age_q <= product == '0 ? cycle_t'(DefaultAge) : cycle_t'(product);
      if (count_q != '0) now_q <= now_q + 1'b1;
      if (start_i || end_i) held_q[queue_i] <= start_i;
      if (pop) waits_q[head.index] <= 1'b0;
      if (push) waits_q[queue_i] <= 1'b1;
      if (push || renew) wr_ptr_q <= wr_ptr_q + 1'b1;
      if (pop || renew) rd_ptr_q <= rd_ptr_q + 1'b1;
      if (push || pop) count_q <= count_q + (QueueWidth + 1)'(push) - (QueueWidth + 1)'(pop);
      if (flush_i) flush_left_q <= count_q + (QueueWidth + 1)'(push) - (QueueWidth + 1)'(pop);
      else if (pop && flush_left_q != '0) flush_left_q <= flush_left_q - 1'b1;
    end
  end

  always_ff @(posedge clk) if (start_i) start_mem[queue_i] <= now_q;
  always_ff @(posedge clk) if (push || renew)
    wait_mem[wr_ptr_q] <= push ? '{index: queue_i, due: now_q + age_q} : '{index: head.index, due: renewed};

  `ONIC_ASSERT(AgeRoom_A, clk, rstn, !push || count_q != (QueueWidth + 1)'(NumQueue), "more waiting lines than queues")
  `ONIC_ASSERT(AgeEvent_A, clk, rstn, !(start_i && end_i), "a line begins and ends at once")
endmodule
`default_nettype wire
