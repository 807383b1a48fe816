// Writes decided C2H frames to their buffers, beat by beat, and tells how each frame went.
//
// A beat is sent with byte enables for the bytes that go to the buffer and 4 KiB page at hand, and with the address that its
// byte 0 would have there (below the buffer, modulo 2^64, if byte 0 went elsewhere); if bytes are left, once more. Every beat
// of a frame that is failed, lost or longer than ctrl_len is taken and not sent.
//
// pay_o.last: end of a buffer, or of the frame's bytes. frame_done follows when the frame's last beat was taken by host
// memory; packet ids count from 1. A frame whose bytes disagree with ctrl_len: FaultLenMismatch. ctrl_len 0 is 1 beat.
//
// Latency from beat and verdict to pay_valid_o: 1 cycle. Throughput: 1 beat a cycle, and 1 cycle more for each split.
// pay_ready_i and frame_done_ready_i are honoured.
`include "onic_assert.svh"
`default_nettype none
module qdma_c2h_scatter import qdma_pkg::*; import qdma_c2h_pkg::*; (
  input  wire            clk,
  input  wire            rstn,                         // synchronous, active low
  // Beats
  input  wire            beat_valid_i,
  input  wire    [511:0] beat_data_i,
  input  wire            beat_last_i,
  input  wire      [5:0] beat_mty_i,                   // void bytes at the end of the last beat
  output logic           beat_ready_o,
  // The verdict about their frame
  input  wire            verdict_valid_i,
  input  wire verdict_t  verdict_i,
  output logic           verdict_ready_o,              // with the frame's last beat
  input  wire            kill_i,                       // its queue was stopped: nothing more of it is written, it is lost
  // Its buffers
  output logic     [4:0] place_o,
  input  wire addr_t     addr_i,                       // of buffer place_o, same cycle
  output logic           free_o,
  output logic     [4:0] free_count_o,
  // To host memory
  output logic           pay_valid_o,
  output write_t         pay_o,
  input  wire            pay_ready_i,
  // How it went
  output logic           frame_done_valid_o,
  output frame_done_t    frame_done_o,
  input  wire            frame_done_ready_i,
  output logic           frame_end_o,                  // one cycle: a frame is behind us, its bytes in host memory
  output fault_t         fault_o
);
  // ---- Fault for the tests: 20, no split at 4 KiB. ----
  logic fault_page;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_page = fault == 20;
`else
  assign fault_page = 1'b0;
`endif

  // ---- Where we are ----
  logic        first_q;                                // the beat is its frame's first
  logic [15:0] rest_q;                                 // bytes of the frame from this beat on, by ctrl_len, unless first
  logic  [5:0] lane_q;                                 // bytes of this beat that were sent
  logic        inside_q;                               // in a buffer that has room; else the next one begins
  addr_t       addr_q;                                 // of the next byte, if inside
  logic [15:0] left_q;                                 // bytes that its buffer still takes, if inside
  logic  [4:0] place_q;                                // of the next buffer

  // ---- The piece of this cycle ----
  wire         taken_up   = verdict_i.outcome == FrameWritten;    // it has buffers
  wire         written    = taken_up && !kill_i;
  wire  [15:0] rest       = first_q ? verdict_i.len : rest_q;
  wire   [6:0] in_beat    = 7'd64 - (beat_last_i ? 7'(beat_mty_i) : 7'd0);
  wire   [6:0] want       = !written ? 7'(lane_q) : rest < 16'(in_beat) ? rest[6:0] : in_beat;
  wire   [6:0] todo       = want - 7'(lane_q);
  wire addr_t  addr       = inside_q ? addr_q : addr_i;
  wire  [15:0] left       = inside_q ? left_q : verdict_i.buffer_size;
  wire  [12:0] page_left  = fault_page ? 13'd4096 : 13'd4096 - 13'(addr[11:0]);
  wire   [6:0] in_buffer  = left < 16'(todo) ? left[6:0] : todo;
  wire   [6:0] piece      = page_left < 13'(in_buffer) ? page_left[6:0] : in_buffer;
  wire   [6:0] lane_end   = 7'(lane_q) + piece;
  wire         beat_end   = piece == todo;
  wire         frame_end  = beat_end && beat_last_i;
  wire         buffer_end = piece != '0 && left == 16'(piece);

  function automatic logic [63:0] lanes_below(input logic [6:0] lane);
    return ~(64'hFFFF_FFFF_FFFF_FFFF << lane);
  endfunction

  // ---- Step ----
  logic step;
  assign beat_ready_o    = step && beat_end;
  assign verdict_ready_o = step && frame_end;
  assign place_o         = place_q;
  assign free_o          = step && frame_end && taken_up;
  assign free_count_o    = verdict_i.buffers;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      first_q  <= 1'b1;
      lane_q   <= '0;
      inside_q <= 1'b0;
      place_q  <= '0;
    end else if (step) begin
      lane_q <= beat_end ? 6'd0 : lane_end[5:0];
      if (beat_end) first_q <= beat_last_i;
      if (frame_end) begin
        inside_q <= 1'b0;
        place_q  <= '0;
      end else if (piece != '0) begin
        inside_q <= !buffer_end;
        place_q  <= place_q + 5'(!inside_q);
      end
    end
  end

  always_ff @(posedge clk) begin
    if (step) begin
      if (beat_end)    rest_q <= rest > 16'd64 ? rest - 16'd64 : 16'd0;
      if (piece != '0) begin
        addr_q <= addr + addr_t'(piece);
        left_q <= left - 16'(piece);
      end
    end
  end

  // ---- Output: a piece, an end, or both; the end leaves when the piece is taken ----
  logic        end_q;
  frame_done_t done_q;
  logic        done_room;
  wire         pay_gone = !pay_valid_o || pay_ready_i;

  assign frame_end_o = end_q && pay_gone && done_room;
  assign step        = beat_valid_i && verdict_valid_i && pay_gone && (!end_q || done_room);

  always_ff @(posedge clk) begin
    if (!rstn) begin
      pay_valid_o   <= 1'b0;
      end_q         <= 1'b0;
      done_q.pkt_id <= '0;
    end else begin
      if (pay_gone)            pay_valid_o <= step && piece != '0;
      if (step || frame_end_o) end_q       <= step && frame_end;
      if (step && frame_end)   done_q.pkt_id <= done_q.pkt_id + 1'b1;
    end
    if (step && frame_end) begin
      done_q.qid     <= verdict_i.qid;
      done_q.outcome <= taken_up && kill_i ? FrameLost : verdict_i.outcome;
      done_q.why     <= taken_up && kill_i ? DropStopped : verdict_i.why;
    end
    if (step && piece != '0) begin
      pay_o.func <= verdict_i.func;
      pay_o.addr <= addr - addr_t'(lane_q);
      pay_o.data <= beat_data_i;
      pay_o.be   <= lanes_below(lane_end) & ~lanes_below(7'(lane_q));
      pay_o.last <= buffer_end || (beat_end && (beat_last_i || rest <= 16'd64));
    end
  end

  // ---- Faults ----
  wire zero_frame = first_q && rest == '0;
  wire mismatch   = written && rest != 16'(in_beat) && !zero_frame;

  always_ff @(posedge clk) begin
    fault_o <= '0;
    if (step && frame_end && rstn) begin
      fault_o.kind <= mismatch ? FaultLenMismatch : verdict_i.fault;
      fault_o.qid  <= verdict_i.qid;
    end
  end

  // ---- Frames that are done ----
  wire [4:0] unused_count;
  sync_fifo #(.Width($bits(frame_done_t)), .Depth(16)) u_done (
    .clk, .rstn,
    .wr_en_i(frame_end_o), .wr_data_i(done_q), .wr_ready_o(done_room),
    .rd_valid_o(frame_done_valid_o), .rd_data_o(frame_done_o), .rd_en_i(frame_done_valid_o && frame_done_ready_i),
    .count_o(unused_count));

  // ---- Rules of use ----
  `ONIC_ASSERT(Progress_A, clk, rstn, !step || piece != '0 || todo == '0, "a step that neither writes nor ends a beat")
  `ONIC_ASSERT(Places_A, clk, rstn, !(step && piece != '0 && !inside_q) || place_q < verdict_i.buffers,
               "a frame used more buffers than were popped for it")
  `ONIC_ASSERT_STABLE(PayStable_A, clk, rstn, pay_valid_o, pay_ready_i, pay_o, $bits(write_t),
                      "a payload write changed while it was held back")

  // ---- What a run should have seen ----
  always_ff @(posedge clk) begin
    if (rstn) begin
      SplitBuffer_C: cover (step && !beat_end && buffer_end);
      SplitPage_C: cover (step && !beat_end && !buffer_end);
      BackToBack_C: cover (step && frame_end && end_q);
    end
  end
endmodule
`default_nettype wire
