// Reorder buffer of the H2C path: answers of any order in, judged frames and their beats in order out.
//
//   issue_i ─► table by tag ─► rsp_i: data to their place, a record to the read's number
//   judge: records in order ─► verdict of each frame ─► FIFO ─► verdict_*; beat_take_i ─► beats in order
//
// The place of each beat was reserved when its read was sent, so an answer never waits. A read's record is written with
// its answer's last beat and is told from an older one by its lap bit, which changes each time the numbers wrap: every
// number is written once in a lap. After reset the records are swept once, 2048 cycles, before ready_o rises.
// A frame is judged when all its reads are answered: EndSent, or the first error in the order of its bytes. An answer with
// an error may have fewer beats than its read; its places are kept and hold nothing.
// Latency: verdict 2 cycles after the last answer's last beat. 1 answer beat, 1 verdict, 1 beat out a cycle.
// The FIFOs hold as many frames as there is room for in the buffer, so judging never waits for the shell.
//
// Fence: fence_busy_o stays high until each frame popped before is judged: all its reads are answered.
`include "onic_assert.svh"
`default_nettype none
module qdma_h2c_reorder import qdma_pkg::*, qdma_h2c_pkg::*; (
  input  wire          clk,
  input  wire          rstn,                           // synchronous, active low, power-up only
  output logic         ready_o,                        // swept; stays high
  // Fence
  input  wire          fence_i,
  output logic         fence_busy_o,                   // from the same cycle on
  // Frames popped, reads before they are sent
  input  wire          frame_valid_i,
  input  wire          issue_valid_i,
  input  wire issue_t  issue_i,
  // Answers
  input  wire read_rsp_t rsp_i,
  // Frames judged
  output logic         verdict_valid_o,
  output end_e         verdict_o,
  input  wire          verdict_take_i,
  // Beats: data_o in the cycle after beat_take_i, held until the next
  input  wire          beat_take_i,
  output logic [511:0] data_o
);
  localparam int unsigned PlaceWidth = $bits(place_t);

  // ---- Reads on their way, by tag ----
  typedef struct packed {
    place_t     place;
    number_t    number;
    logic [6:0] beats;
    logic       last;
  } read_t;
  read_t read_mem [2**TagWidth];

  always_ff @(posedge clk) begin
    if (issue_valid_i) read_mem[issue_i.tag] <= '{issue_i.place, issue_i.number, issue_i.beats, issue_i.last};
  end

  // ---- Answers ----
  logic       inside_q;                                // the next beat is not an answer's first
  place_t     place_q;                                 // its place
  logic [6:0] beats_q;                                 // beats before it
  read_t      read;
  place_t     place;
  logic [6:0] beats;                                   // this one included

  assign read  = read_mem[rsp_i.tag];
  assign place = inside_q ? place_q : read.place;
  assign beats = (inside_q ? beats_q : 7'd0) + 7'd1;

  always_ff @(posedge clk) begin
    if (!rstn)            inside_q <= 1'b0;
    else if (rsp_i.valid) inside_q <= !rsp_i.last;
    if (rsp_i.valid) begin
      place_q <= place + 1'b1;
      beats_q <= beats;
    end
  end

  logic [511:0] data_mem [ReorderBeats];
  place_t       out_place_q;

  always_ff @(posedge clk) begin
    if (rsp_i.valid && rsp_i.status == ReadOk) data_mem[place] <= rsp_i.data;
    if (beat_take_i) data_o <= data_mem[out_place_q];
    if (!rstn)            out_place_q <= '0;
    else if (beat_take_i) out_place_q <= out_place_q + 1'b1;
  end

  // ---- Records, by the read's number ----
  typedef struct packed {
    logic lap;
    logic last;
    end_e how;
  } record_t;
  record_t     record_mem [ReorderBeats];
  number_t     sweep_q;                                // places swept; the top bit says all
  wire         answered = rsp_i.valid && rsp_i.last;
  end_e        how;

  always_comb begin
    unique case (rsp_i.status)
      ReadOk:       how = EndSent;
      ReadPoisoned: how = EndPoisoned;
      default:      how = EndUnsupported;
    endcase
  end

  assign ready_o = sweep_q[PlaceWidth];

  always_ff @(posedge clk) begin
    if (!rstn)         sweep_q <= '0;
    else if (!ready_o) sweep_q <= sweep_q + 1'b1;
    if (!ready_o)      record_mem[sweep_q[PlaceWidth-1:0]] <= '0;
    else if (answered) record_mem[read.number[PlaceWidth-1:0]] <= '{!read.number[PlaceWidth], read.last, how};
  end

  // ---- Judge ----
  number_t judge_q;                                    // the read at its turn
  end_e    worst_q;                                    // of the frame's reads before
  record_t record;
  end_e    worst;
  wire     judge       = ready_o && record.lap == !judge_q[PlaceWidth];
  wire     frame_judge = judge && record.last;
  wire     verdict_ready;
  wire [$clog2(MaxFrames):0] unused_count;
  logic [1:0] verdict;

  assign record = record_mem[judge_q[PlaceWidth-1:0]];
  assign worst  = worst_q != EndSent ? worst_q : record.how;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      judge_q <= '0;
      worst_q <= EndSent;
    end else if (judge) begin
      judge_q <= judge_q + 1'b1;
      worst_q <= record.last ? EndSent : worst;
    end
  end

  sync_fifo #(.Width(2), .Depth(MaxFrames)) u_verdicts (
    .clk, .rstn,
    .wr_en_i(frame_judge), .wr_data_i(worst), .wr_ready_o(verdict_ready),
    .rd_valid_o(verdict_valid_o), .rd_data_o(verdict), .rd_en_i(verdict_take_i), .count_o(unused_count)
  );
  assign verdict_o = end_e'(verdict);

  // ---- Fence. Fault 17 for the alarm tests: it ends at once. ----
  logic fault_fence;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_fence = fault == 17;
`else
  assign fault_fence = 1'b0;
`endif

  logic [$clog2(MaxFrames)+1:0] open_q, open_d;        // frames popped and not judged
  logic [$clog2(MaxFrames)+1:0] wait_q;                // of these, the ones that the fence waits for

  always_comb begin
    open_d = open_q;
    if (frame_valid_i) open_d = open_d + 1'b1;
    if (frame_judge)   open_d = open_d - 1'b1;
  end

  always_ff @(posedge clk) begin
    if (!rstn) begin
      open_q <= '0;
      wait_q <= '0;
    end else begin
      open_q <= open_d;
      if (fence_i)                             wait_q <= fault_fence ? '0 : open_d;
      else if (frame_judge && wait_q != '0)    wait_q <= wait_q - 1'b1;
    end
  end
  assign fence_busy_o = (fence_i && !fault_fence) || wait_q != '0;

  // ---- Rules of use ----
  `ONIC_ASSERT(AnswerWhole_A, clk, rstn, !answered || rsp_i.status != ReadOk || beats == read.beats,
               "the beats of a data answer disagree with its read")
  `ONIC_ASSERT(AnswerAfterSweep_A, clk, rstn, !rsp_i.valid || ready_o, "a data answer before the first read")
  `ONIC_ASSERT(VerdictRoom_A, clk, rstn, !frame_judge || verdict_ready, "more frames than the reorder buffer has room for")
  `ONIC_ASSERT(JudgePopped_A, clk, rstn, !frame_judge || open_q != '0, "a frame was judged that was not popped")

  // ---- What a run should have seen ----
  place_t judged_place_q;                              // only for the cover below: place of the youngest answer
  always_ff @(posedge clk) if (answered && !inside_q) judged_place_q <= read.place;
  always_ff @(posedge clk) begin
    if (rstn) begin
      OutOfOrder_C: cover (answered && !inside_q && place_t'(read.place - judged_place_q) > place_t'(ReorderBeats / 2));
      FrameInError_C: cover (frame_judge && worst != EndSent);
    end
  end
endmodule
`default_nettype wire
