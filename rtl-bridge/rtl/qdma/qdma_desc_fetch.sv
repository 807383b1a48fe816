// Decides what is read from descriptor rings, one queue after the other.
//
// A queue from the list (qdma_desc_want) is looked at for 3 cycles: pick, read its context, decide. So at most one read in
// 3 cycles is sent, of up to fetch_bytes_i. A decision sends a read and puts the queue back on the list, or says when the
// queue must be looked at again: it waits for a doorbell, an answer, a frame's demand, or for the pop that makes room
// enough (sent_t.wake). A control operation on the queue ends the look; control puts the queue back on the list.
//
// With the tag table full or the last read not yet taken, the decision waits. The ring base's bits below DescBytes are
// taken as 0, so no descriptor crosses a 4 KiB boundary.
//
// Source: qdma.md sections 5.1 and 7.5.
`default_nettype none
module qdma_desc_fetch import qdma_pkg::*, qdma_desc_pkg::*; #(
  parameter int unsigned DescBytes = 8,                // 8 or 16
  parameter int unsigned AheadMax  = 256,              // entries of a queue's descriptor memory
  parameter bit          H2c       = 1'b0
) (
  input  wire            clk,
  input  wire            rstn,                         // synchronous, active low
  // Settings
  input  wire config_t   config_i,
  input  wire      [8:0] ahead_i,
  input  wire      [5:0] fetches_i,
  input  wire     [12:0] fetch_bytes_i,
  // List
  input  wire            pick_valid_i,
  input  wire qid_t      pick_qid_i,
  output logic           pick_o,
  output logic           again_valid_o,                // back on the list
  output qid_t           again_qid_o,
  // The queue that is looked at
  output logic           context_rd_o,
  output qid_t           qid_o,
  input  wire software_t software_i,                   // in the cycle after context_rd_o, held
  input  wire queue_t    queue_i,                      // of qid_o, now
  input  wire            pop_i,                        // a pop of qid_o in this cycle
  input  wire            pfch_may_i,                   // of qid_o, given a cycle before: no fetch without it
  input  wire            pfch_en_i,                    // the same: fetches ahead of frames
  input  wire            demand_valid_i,
  input  wire qid_t      demand_qid_i,
  input  wire      [5:0] demand_count_i,
  input  wire            control_i,                    // control changes a queue in this cycle
  input  wire qid_t      control_qid_i,
  // What was decided
  output logic           sent_wr_o,
  output sent_t          sent_o,
  output logic           impossible_o,                 // level: the context can't be served; until control changes the queue
  // Read
  input  wire            tag_free_i,
  input  wire      [5:0] tag_i,                        // the one that is used next
  output logic           tag_take_o,
  output tag_t           tag_o,
  output logic           rd_valid_o,
  output read_req_t      rd_o,
  input  wire            rd_ready_i,
  output logic           idle_o,                       // no queue is looked at, no read offered
  // Faults
  input  wire            fault_wrap_i,                 // rings wrap at N
  input  wire     [15:0] fault_leak_i                  // descriptors of room that are lost
);
  localparam int unsigned DescShift = $clog2(DescBytes);

  typedef enum logic [1:0] {FetchPick, FetchRead, FetchDecide, FetchRefuse} state_e;
  state_e state_q, state_d;
  qid_t   qid_q;

  // ---- What may be read. Counts are descriptors. All 0 but when it is decided: simulation leaves it out in other cycles. ----
  logic [15:0] entries, usable, posted, to_ring_end, limit, used, room, batch, worth, count;
  logic  [9:0] to_page_end;
  logic [15:0] ahead, demand;
  logic  [6:0] in_flight;
  addr_t       ring_base, addr;
  logic        in_ring, urgent, may_send, go;

  always_comb begin
    entries     = '0;
    usable      = '0;
    posted      = '0;
    to_ring_end = '0;
    limit       = '0;
    used        = '0;
    room        = '0;
    batch       = '0;
    worth       = '0;
    count       = '0;
    to_page_end = '0;
    ahead       = '0;
    demand      = '0;
    in_flight   = '0;
    ring_base   = '0;
    addr        = '0;
    in_ring     = 1'b0;
    urgent      = 1'b0;
    may_send    = 1'b0;
    go          = 1'b0;
    if (state_q == FetchDecide) begin
      entries     = config_i.ring_size[queue_i.origin.ring_select];
      usable      = fault_wrap_i ? entries : entries - 16'd1;
      in_ring     = entries >= 16'd3 && queue_i.sent.index < usable && software_i.ctxt.pidx < entries - 16'd1;
      posted      = in_ring ? ring_distance(queue_i.sent.index, software_i.ctxt.pidx, entries) : '0;
      if (fault_wrap_i && in_ring && software_i.ctxt.pidx < queue_i.sent.index) posted = posted + 16'd1;
      to_ring_end = usable - queue_i.sent.index;

      ring_base   = software_i.ctxt.ring_base;
      addr        = {ring_base[63:DescShift], DescShift'(0)} + (addr_t'(queue_i.sent.index) << DescShift);
      to_page_end = 10'((13'd4096 - {1'b0, addr[11:0]}) >> DescShift);

      // How many descriptors may be in flight or ready.
      ahead  = 16'(ahead_i);
      if (!H2c && config_i.prefetch_num != '0 && 16'(config_i.prefetch_num) < ahead) ahead = 16'(config_i.prefetch_num);
      if (ahead == '0) ahead = 16'd1;
      demand = demand_valid_i && demand_qid_i == qid_q ? 16'(demand_count_i) : '0;
      limit  = H2c || pfch_en_i || !software_i.ctxt.fcrd_en ? ahead : '0;
      if (limit < demand)        limit = demand;
      if (!pfch_may_i)           limit = '0;
      if (limit > 16'(AheadMax)) limit = 16'(AheadMax);

      used  = 16'(slot_t'(queue_i.sent.slot - queue_i.popped.slot - slot_t'(pop_i))) + fault_leak_i;
      room  = limit > used ? limit - used : '0;
      batch = 16'(fetch_bytes_i >> DescShift);

      count = posted;
      if (count > room)              count = room;
      if (count > batch)             count = batch;
      if (count > to_ring_end)       count = to_ring_end;
      if (count > 16'(to_page_end))  count = 16'(to_page_end);

      // A read is worth its while with a full batch, a quarter of what may be ahead, or all that is posted. With a quarter,
      // pops go on from the other three while a read is on its way; half would leave a single queue waiting.
      worth = (limit + 16'd3) >> 2;
      if (worth > batch)  worth = batch;
      if (worth > posted) worth = posted;
      urgent    = used == '0 || used < demand;
      in_flight = queue_i.sent.reads - queue_i.delivered.reads;
      may_send  = in_flight < 7'(fetches_i == '0 ? 6'd1 : fetches_i);
      go        = queue_i.origin.run && count != '0 && (urgent || room >= worth) && may_send;
    end
  end

  // ---- One queue after the other. ----
  wire disturbed = control_i && control_qid_i == qid_q;
  wire servable  = possible(software_i.ctxt.desc_size, software_i.ctxt.bypass, software_i.ctxt.is_mm, DescBytes);
  wire rd_free   = !rd_valid_o || rd_ready_i;
  wire send      = state_q == FetchDecide && !disturbed && go && servable && tag_free_i && rd_free;
  wire leave     = state_q == FetchDecide && !disturbed && !go;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      FetchPick:   if (pick_valid_i) state_d = FetchRead;
      FetchRead:   state_d = disturbed ? FetchPick : FetchDecide;
      FetchDecide: if (disturbed || send || leave) state_d = FetchPick;
                   else if (!servable)             state_d = FetchRefuse;
      FetchRefuse: if (disturbed) state_d = FetchPick;
      default:     state_d = FetchPick;
    endcase
  end

  always_ff @(posedge clk) begin
    if (!rstn) state_q <= FetchPick;
    else       state_q <= state_d;
    if (state_q == FetchPick && pick_valid_i) qid_q <= pick_qid_i;
  end

  // Tables and fields of others; the ring base's bits that count as 0.
  wire unused = ^{config_i, queue_i.done, software_i, ring_base[DescShift-1:0]};

  assign pick_o        = state_q == FetchPick;
  assign context_rd_o  = state_q == FetchRead;
  assign qid_o         = qid_q;
  assign impossible_o  = state_q == FetchRefuse;
  assign again_valid_o = send && posted != count;
  assign again_qid_o   = qid_q;
  assign idle_o        = state_q == FetchPick && !rd_valid_o;

  // ---- What the decision leaves behind. ----
  wire [15:0] next_index = queue_i.sent.index + count;

  always_comb begin
    sent_wr_o        = (send || leave) && queue_i.origin.run;
    sent_o           = '0;
    if (send || leave) begin
      sent_o           = queue_i.sent;
      sent_o.wake      = leave && posted != '0 && room < worth && worth <= limit;
      sent_o.wake_used = slot_t'(limit - worth);
    end
    if (send) begin
      sent_o.index = next_index == usable ? '0 : next_index;
      sent_o.slot  = queue_i.sent.slot + slot_t'(count);
      sent_o.reads = queue_i.sent.reads + 7'd1;
    end
    tag_take_o = send;
    tag_o      = '0;
    if (send) begin
      tag_o = '{qid: qid_q, generation: queue_i.origin.generation, slot: queue_i.sent.slot, count: slot_t'(count),
                next: sent_o.index};
    end
  end

  always_ff @(posedge clk) begin
    if (!rstn)        rd_valid_o <= 1'b0;
    else if (rd_free) rd_valid_o <= send;
    if (send) begin
      rd_o <= '{func: dma_func(software_i.ctxt.func), addr: addr, len: 13'(count) << DescShift, tag: TagWidth'(tag_i)};
    end
  end
endmodule
`default_nettype wire
