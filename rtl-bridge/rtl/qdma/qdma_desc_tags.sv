// Descriptor reads in flight: up to 64, answered in any order, retired in the order in which they were sent.
//
// A beat of an answer is written to its place in the store as it comes, unless its queue has another generation by then.
// An answer with an error may have fewer beats than its read, gaps may lie between beats.
// Retirement, one read a cycle, makes the descriptors of an answered read visible: it moves delivered_t. A read of an earlier
// generation is dropped. A read that failed stays at the head and asks control to fail its queue, which makes it one of
// an earlier generation. Retirement rests in cycles in which control changes a queue, so both never write at once.
//
// Fence: busy from the cycle after the pulse until all reads that were sent before are retired.
//
// A read can't meet its own generation again: a queue needs context commands for that, each of them
// followed by a fence that waits for the read.
`include "onic_assert.svh"
`default_nettype none
module qdma_desc_tags import qdma_pkg::*, qdma_desc_pkg::*; #(
  parameter int unsigned DescBytes = 8                 // 8 or 16
) (
  input  wire            clk,
  input  wire            rstn,                         // synchronous, active low
  // A read is sent
  output logic           free_o,
  output logic     [5:0] tag_o,                        // of the next read
  input  wire            take_i,
  input  wire tag_t      take_tag_i,
  // Answers
  input  wire read_rsp_t rsp_i,
  output qid_t           answer_qid_o,                 // -> answer_origin_i, now
  input  wire origin_t   answer_origin_i,
  output logic           store_wr_o,
  output slot_t          store_slot_o,
  output slot_t          store_count_o,                // descriptors left of the answer
  // Retirement
  output qid_t           retire_qid_o,                 // -> retire_*_i, now
  input  wire origin_t   retire_origin_i,
  input  wire delivered_t retire_delivered_i,
  input  wire            control_i,                    // control changes a queue in this cycle
  output logic           delivered_wr_o,
  output delivered_t     delivered_o,
  output logic           failed_o,                     // level: the head's read has failed
  output generation_t    failed_generation_o,
  output fault_e         failed_fault_o,
  // Fence
  input  wire            fence_i,
  output logic           fence_busy_o,
  input  wire            fault_fence_i,                // fault: fences end at once
  output logic           idle_o                        // no read is in flight
);
  localparam int unsigned PerBeat = 64 / DescBytes;    // descriptors

  tag_t        tags [64];
  logic [63:0] answered_q, poisoned_q, refused_q;
  logic  [5:0] head_q, tail_q;
  logic  [6:0] count_q;                                // reads in flight
  slot_t       place_q;                                // descriptors of the present answer that came

  // ---- Send ----
  assign free_o = !count_q[6];
  assign tag_o  = tail_q;

  // ---- Answer ----
  wire [5:0] rsp_tag = rsp_i.tag[5:0];
  wire [5:0] rsp_age = rsp_tag - head_q;               // reads sent before it that are not retired
  tag_t      answer;
  assign answer        = tags[rsp_tag];
  assign answer_qid_o  = answer.qid;
  assign store_wr_o    = rsp_i.valid && rsp_i.status == ReadOk && answer_origin_i.run
                         && answer_origin_i.generation == answer.generation;
  assign store_slot_o  = answer.slot + place_q;
  assign store_count_o = answer.count - place_q;

  // ---- Retire ----
  tag_t head;
  assign head = tags[head_q];
  wire   done    = answered_q[head_q];
  wire   current = retire_origin_i.run && retire_origin_i.generation == head.generation;
  wire   broken  = poisoned_q[head_q] || refused_q[head_q];
  wire   retire  = done && !control_i && !(current && broken);

  assign retire_qid_o        = head.qid;
  assign delivered_wr_o      = retire && current;
  assign delivered_o         = '{cidx: head.next, slot: retire_delivered_i.slot + head.count,
                                 reads: retire_delivered_i.reads + 7'd1};
  assign failed_o            = done && current && broken;
  assign failed_generation_o = head.generation;
  assign failed_fault_o      = poisoned_q[head_q] ? FaultDescPoison : FaultDescRead;

  always_ff @(posedge clk) begin
    if (take_i) tags[tail_q] <= take_tag_i;
  end

  always_ff @(posedge clk) begin
    if (!rstn) begin
      answered_q <= '0;
      poisoned_q <= '0;
      refused_q  <= '0;
      head_q     <= '0;
      tail_q     <= '0;
      count_q    <= '0;
      place_q    <= '0;
    end else begin
      count_q <= count_q + 7'(take_i) - 7'(retire);
      if (take_i) begin
        tail_q             <= tail_q + 6'd1;
        answered_q[tail_q] <= 1'b0;
        poisoned_q[tail_q] <= 1'b0;
        refused_q[tail_q]  <= 1'b0;
      end
      if (retire) begin
        head_q             <= head_q + 6'd1;
        answered_q[head_q] <= 1'b0;
      end
      if (rsp_i.valid) begin
        place_q <= rsp_i.last ? '0 : place_q + slot_t'(PerBeat);
        if (rsp_i.last) begin
          answered_q[rsp_tag] <= 1'b1;
          poisoned_q[rsp_tag] <= rsp_i.status == ReadPoisoned;
          refused_q[rsp_tag]  <= rsp_i.status != ReadPoisoned && rsp_i.status != ReadOk;
        end
      end
    end
  end

  // ---- Fence ----
  logic [6:0] fence_left_q;                            // reads to retire before the fence ends

  always_ff @(posedge clk) begin
    if (!rstn)                                fence_left_q <= '0;
    else if (fence_i)                         fence_left_q <= fault_fence_i ? '0 : count_q - 7'(retire);
    else if (retire && fence_left_q != '0)    fence_left_q <= fence_left_q - 7'd1;
  end
  assign fence_busy_o = fence_left_q != '0;
  assign idle_o       = count_q == '0;

  wire unused = ^{rsp_i, answer_origin_i, retire_origin_i, retire_delivered_i.cidx, answer.next, head.slot};

  `ONIC_ASSERT(DescTagTaken_A, clk, rstn, !(take_i && !free_o), "a read was sent without a free tag")
  `ONIC_ASSERT(DescAnswerKnown_A, clk, rstn, !rsp_i.valid || 7'(rsp_age) < count_q,
               "an answer to a read that is not in flight")
  `ONIC_ASSERT(DescAnswerOnce_A, clk, rstn, !rsp_i.valid || !answered_q[rsp_tag], "a second answer to a read")
  `ONIC_ASSERT(DescAnswerLength_A, clk, rstn,
               !rsp_i.valid || (rsp_i.status == ReadOk ? rsp_i.last == (store_count_o <= slot_t'(PerBeat))
                                                       : rsp_i.last || store_count_o > slot_t'(PerBeat)),
               "an answer has more beats than its read asked for, or fewer and no error")
endmodule
`default_nettype wire
