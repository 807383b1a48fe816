// One timer for each queue, kept in lists by the time slot in which they end.
//
// A slot is 16 cycles; 256 slots make a round. A timer is in the list of its slot, whatever the round; when a slot is over,
// its list is taken off and walked, one timer a cycle: timers that ended are offered, those of a later round go back, those
// that were stopped fall out. Start and stop only change the timer's own word: one that is restarted stays in its old list
// and moves when that list is walked; if it ends before that list's slot, the list is walked at once, out of turn. So time and lists stand still while no timer is in a list.
//
// Length: ticks * timer_tick cycles, as both are in the cycle after the start; 0 is allowed. A timer ends at
// its length or up to 16 cycles after, and later by a cycle for each other timer in its slot.
// One that was restarted shorter may end up to 256 cycles later than that, which finding its old list takes.
// Throughput: a start or stop each cycle; moves wait for them. expire_valid_o waits for expire_ready_i, and may be withdrawn
// by a start or stop of the same queue, which the user must not issue in the cycle of the ready.
//
// Source: qdma.md 7.1.
`include "onic_assert.svh"
`default_nettype none
module qdma_timer_wheel import qdma_pkg::*; #(
  parameter  int unsigned NumQueue = 512,             // a power of two, at least 2
  localparam int unsigned QueueWidth = $clog2(NumQueue)
) (
  input  wire                  clk,
  input  wire                  rstn,                  // synchronous, active low
  input  wire           [31:0] timer_tick_i,          // cycles
  // Start or restart, or stop
  input  wire                  start_i,
  input  wire                  stop_i,
  input  wire [QueueWidth-1:0] queue_i,
  input  wire           [15:0] ticks_i,
  // Ended
  output logic                 expire_valid_o,
  output logic [QueueWidth-1:0] expire_queue_o,
  input  wire                  expire_ready_i,
  output logic                 idle_o                 // no timer is in a list
);
  localparam int unsigned SlotBits  = 4;              // log2 of a slot's cycles
  localparam int unsigned WheelBits = 8;              // log2 of the slots
  localparam int unsigned TimeWidth = 49;             // a length has up to 48 bits: times are compared by sign

  typedef logic [QueueWidth-1:0] queue_index_t;
  typedef logic  [TimeWidth-1:0] cycle_t;
  typedef logic  [WheelBits-1:0] slot_t;
  typedef struct packed {
    logic         more;
    queue_index_t index;
  } link_t;

  cycle_t       end_mem  [NumQueue];                  // when the queue's timer ends, void unless running
  link_t        next_mem [NumQueue];                  // list link, void unless linked
  queue_index_t head_mem [2 ** WheelBits];
  logic [NumQueue-1:0]       running_q, linked_q;
  logic [2 ** WheelBits-1:0] used_q;                  // slots whose list is not empty
  slot_t        place_mem [NumQueue];                 // whose list the timer is in, void unless linked
  logic [2 ** WheelBits-1:0] early_q;                 // slots whose list has a timer that ends before
  logic                      any_early_q;
  slot_t                     scan_q;                  // slot that is asked next whether it is one

  // ---- A command takes a cycle more, for the product.
  logic         start_q, stop_q;
  queue_index_t queue_q;
  logic  [15:0] ticks_q;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      start_q <= 1'b0;
      stop_q  <= 1'b0;
    end else begin
      start_q <= start_i;
      stop_q  <= stop_i && !start_i;
      if (start_i || stop_i) begin
        queue_q <= queue_i;
        ticks_q <= ticks_i;
      end
    end
  end

  // ---- Time runs while timers are linked.
  cycle_t                now_q;
  logic [QueueWidth:0]   linked_count_q;
  logic [TimeWidth-SlotBits-1:0] walked_q;            // first slot time that was not walked
  wire  [TimeWidth-SlotBits-1:0] slot_time = now_q[TimeWidth-1:SlotBits];

  // ---- The walk: chain_q is what is left of the list taken off.
  logic         chain_valid_q;
  queue_index_t chain_q;
  link_t        after;                                // what follows chain_q
  cycle_t       chain_end, left;

  logic  insert, fall_out, move, take, take_early, early;
  logic  [TimeWidth-SlotBits-1:0] ahead;              // slots from the walk to the new end
  cycle_t end_new;
  slot_t put_slot;
  queue_index_t put_queue;

  always_comb begin
    insert         = 1'b0;
    fall_out       = 1'b0;
    move           = 1'b0;
    take           = 1'b0;
    take_early     = 1'b0;
    early          = 1'b0;
    ahead          = '0;
    expire_valid_o = 1'b0;
    end_new        = '0;
    after          = '0;
    chain_end      = '0;
    left           = '0;
    put_slot       = '0;
    put_queue      = chain_q;
    if (start_q) begin
      insert    = !linked_q[queue_q];
      end_new   = now_q + cycle_t'(ticks_q) * cycle_t'(timer_tick_i);
      put_slot  = end_new[SlotBits +: WheelBits];
      put_queue = queue_q;
      ahead     = end_new[TimeWidth-1:SlotBits] - walked_q;
      early     = linked_q[queue_q] && ahead[TimeWidth-SlotBits-1:WheelBits] == '0
                  && ahead[WheelBits-1:0] < slot_t'(place_mem[queue_q] - walked_q[WheelBits-1:0]);
    end
    if (chain_valid_q) begin
      after     = next_mem[chain_q];
      chain_end = end_mem[chain_q];
      left      = chain_end - now_q;
      if (!((start_q || stop_q) && queue_q == chain_q)) begin
        if (!running_q[chain_q]) begin
          fall_out = 1'b1;
        end else if (left == '0 || left[TimeWidth-1]) begin
          expire_valid_o = 1'b1;
        end else if (!insert) begin
          move      = 1'b1;
          put_slot  = chain_end[SlotBits +: WheelBits];
          put_queue = chain_q;
        end
      end
    end else begin
      take = linked_count_q != '0 && walked_q != slot_time && !(insert && put_slot == walked_q[WheelBits-1:0]);
      if (any_early_q && !take) take_early = early_q[scan_q] && !(insert && put_slot == scan_q);
    end
  end

  assign expire_queue_o = chain_q;
  assign idle_o         = linked_count_q == '0 && !start_q && !stop_q;

  wire expire = expire_valid_o && expire_ready_i;
  wire unlink = fall_out || expire;
  wire put    = insert || move;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      running_q      <= '0;
      linked_q       <= '0;
      used_q         <= '0;
      linked_count_q <= '0;
      now_q          <= '0;
      walked_q       <= '0;
      chain_valid_q  <= 1'b0;
      early_q        <= '0;
      any_early_q    <= 1'b0;
      scan_q         <= '0;
    end else begin
      if (linked_count_q != '0) now_q <= now_q + 1'b1;
      if (insert || unlink) linked_count_q <= linked_count_q + (QueueWidth + 1)'(insert) - (QueueWidth + 1)'(unlink);
      if (start_q || stop_q) running_q[queue_q] <= start_q;
      if (expire) running_q[chain_q] <= 1'b0;
      if (insert) linked_q[queue_q] <= 1'b1;
      if (unlink) linked_q[chain_q] <= 1'b0;
      if (put) used_q[put_slot] <= 1'b1;
      if (insert && linked_count_q == '0) begin
        walked_q <= slot_time;
      end else if (take) begin
        walked_q      <= walked_q + 1'b1;
        chain_valid_q <= used_q[walked_q[WheelBits-1:0]];
        used_q[walked_q[WheelBits-1:0]] <= 1'b0;
      end
      if (take_early) begin
        chain_valid_q   <= used_q[scan_q];
        used_q[scan_q]  <= 1'b0;
        early_q[scan_q] <= 1'b0;
      end
      if (any_early_q) begin
        any_early_q <= early_q != '0;
        if (!early_q[scan_q]) scan_q <= scan_q + 1'b1;
      end
      if (early) begin
        early_q[place_mem[queue_q]] <= 1'b1;
        any_early_q                 <= 1'b1;
      end
      if (unlink || move) chain_valid_q <= after.more;
    end
    if (take)                chain_q <= head_mem[walked_q[WheelBits-1:0]];
    else if (take_early)     chain_q <= head_mem[scan_q];
    else if (unlink || move) chain_q <= after.index;
  end

  always_ff @(posedge clk) if (start_q) end_mem[queue_q] <= end_new;
  always_ff @(posedge clk) if (put) next_mem[put_queue] <= '{more: used_q[put_slot], index: head_mem[put_slot]};
  always_ff @(posedge clk) if (put) head_mem[put_slot] <= put_queue;
  always_ff @(posedge clk) if (put) place_mem[put_queue] <= put_slot;

  `ONIC_ASSERT(WheelIdle_A, clk, rstn, (linked_count_q == '0) == (linked_q == '0) || linked_count_q != '0,
               "timers are in lists that nobody walks")
  `ONIC_ASSERT(WheelGrant_A, clk, rstn, !(expire && (start_i || stop_i) && queue_i == chain_q),
               "a timer is taken while it is started or stopped")
endmodule
`default_nettype wire
