// Card to host: frames of the C2H stream into the buffers that software posted.
//
//   s_axis_c2h ─┬─► beats (FIFO) ───────────────────────────────────────► qdma_c2h_scatter ─► pay, frame_done
//               └─► queue, length (FIFO) ─► qdma_c2h_decide ─► verdicts ─►   ▲
//   context commands ─► qdma_prefetch_context ─┘   │                         │
//   C2H qdma_desc_engine ◄── look, pop ────────────┴─► qdma_c2h_buffers ─────┘ buffer addresses
//
// A frame's fate is decided at its first beat, in order, once:
//   its queue is not enabled (software or prefetch context), or does not exist: lost
//   its queue is in error: failed, FaultDescResponse
//   it needs more than 31 buffers, or its buffers have no size: lost, FaultDescCount
//   its descriptors are there: they are popped and the frame is written
//   else it waits, and all frames behind it
// It takes ceil(ctrl_len / buffer size) buffers, at least one. A failed or lost frame passes at one beat a cycle. A frame that
// is longer than the input FIFO passes, since no decision needs more than the first beat.
//
// Writes: a beat goes out as it came. Where it meets the end of a buffer or of a 4 KiB page it is sent once more, with other
// byte enables and the address that puts its other bytes into their place, so no byte is ever shifted.
// Length: a frame whose beats have fewer or more bytes than ctrl_len is written up to the smaller of both and reported
// (FaultLenMismatch); it counts as written. A frame of ctrl_len 0 is one beat, takes a buffer, and writes nothing.
//
// Latency: pay_valid_o 4 cycles after a beat was taken. Throughput: 1 beat a cycle and 1 cycle more for each split, so 1 frame
// of one beat a cycle, on one queue or many. Back-pressure honoured everywhere. s_axis_c2h_tready is a register.
//
// Fence: frames whose first descriptor had been popped and whose last beat had come at the pulse are written to their end and
// handed to frame_done before busy falls; frame_done must be taken. A frame whose last beat the shell has not sent yet is
// not waited for: if its queue was stopped it is lost from here on, else it goes on whenever the shell does. A queue that
// is stopped while the descriptors of a frame are being popped, one a cycle, loses that frame: no byte of it is written.
//
// Fault of all kinds: cidx is 0, it says nothing about a frame. Left out: markers, the CRC (the top leaves tcrc, ctrl_marker,
// ctrl_port_id, ctrl_ecc and ctrl_has_cmpt open).
//
// Source: qdma.md sections 3.4, 5.3, 7.5 and 8; AMD PG302.
`include "onic_assert.svh"
`default_nettype none
module qdma_c2h_write import qdma_pkg::*; import qdma_c2h_pkg::*; #(
  parameter int unsigned NumQueue   = 512,            // a power of two, 2 to 2048
  parameter int unsigned InputDepth = 32              // beats, a power of two
) (
  input  wire                    clk,
  input  wire                    rstn,                // synchronous, active low; power-up only
  input  wire config_t           config_i,            // buffer_size is used
  // Context commands for selector 7
  input  wire                    ctxt_valid_i,
  input  wire context_command_t  ctxt_i,
  output logic                   ctxt_done_o,         // one cycle
  output logic           [255:0] ctxt_rdata_o,        // CtxtRead: with ctxt_done_o
  // Fence
  input  wire                    fence_i,             // pulse
  output logic                   fence_busy_o,        // from the cycle after the pulse
  // Frames in; ctrl_* count in the first beat, mty in the last
  input  wire                    s_axis_c2h_tvalid,
  input  wire                    s_axis_c2h_tlast,
  input  wire            [511:0] s_axis_c2h_tdata,
  input  wire             [15:0] s_axis_c2h_ctrl_len, // bytes
  input  wire             [10:0] s_axis_c2h_ctrl_qid,
  input  wire              [5:0] s_axis_c2h_mty,
  output logic                   s_axis_c2h_tready,
  // C2H descriptor engine: what the prefetch context allows, and what a waiting frame needs
  input  wire qid_t              pfch_qid_i,
  output logic                   pfch_may_o,          // of pfch_qid_i, one cycle later: any fetch
  output logic                   pfch_en_o,           // and one ahead of frames
  output logic                   demand_valid_o,      // level
  output qid_t                   demand_qid_o,
  output logic             [5:0] demand_count_o,      // descriptors that the frame needs in all
  // Look-up and pop
  output qid_t                   look_qid_o,
  input  wire desc_queue_t       look_i,              // of look_qid_o, one cycle later
  output qid_t                   look2_qid_o,
  input  wire desc_queue_t       look2_i,
  output logic                   pop_valid_o,
  output qid_t                   pop_qid_o,
  input  wire                    news_valid_i,        // queue has changed: has it failed?
  input  wire qid_t              news_qid_i,
  // Payload to host memory
  output logic                   pay_valid_o,
  output write_t                 pay_o,
  input  wire                    pay_ready_i,
  // How frames went, in order of their packet ids; written ones after host memory took their last byte
  output logic                   frame_done_valid_o,
  output frame_done_t            frame_done_o,
  input  wire                    frame_done_ready_i,
  // Faults
  output fault_t                 fault_o,
  output logic                   idle_o               // no frame is inside or has begun to come, frame_done is empty
);
  `ONIC_ASSERT_PARAM(NumQueue, NumQueue >= 2 && NumQueue <= 2048 && (NumQueue & (NumQueue - 1)) == 0,
                     "NumQueue must be a power of two, 2 to 2048")

  // ---- Fault for the tests: 17, the fence ends at once. ----
  logic fault_fence;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_fence = fault == 17;
`else
  assign fault_fence = 1'b0;
`endif

  // ---- Input: beats, and one entry for each frame. A frame's first beat stays until the frame is decided, so there are
  // never more frames than beats inside. ----
  logic   mid_frame_q;                                // a beat has come, the last has not
  logic   beat_valid, beat_last, beat_ready;
  logic   [511:0] beat_data;
  logic     [5:0] beat_mty;
  logic   frame_room, frame_valid, frame_ready;
  frame_t frame;
  wire    beat_in = s_axis_c2h_tvalid && s_axis_c2h_tready;
  wire    [$clog2(InputDepth):0] unused_beats, unused_frames;

  always_ff @(posedge clk) begin
    if (!rstn)        mid_frame_q <= 1'b0;
    else if (beat_in) mid_frame_q <= !s_axis_c2h_tlast;
  end

  sync_fifo #(.Width(512 + 1 + 6), .Depth(InputDepth)) u_beats (
    .clk, .rstn,
    .wr_en_i(beat_in), .wr_data_i({s_axis_c2h_tdata, s_axis_c2h_tlast, s_axis_c2h_mty}), .wr_ready_o(s_axis_c2h_tready),
    .rd_valid_o(beat_valid), .rd_data_o({beat_data, beat_last, beat_mty}), .rd_en_i(beat_ready),
    .count_o(unused_beats));

  sync_fifo #(.Width($bits(frame_t)), .Depth(InputDepth)) u_frames (
    .clk, .rstn,
    .wr_en_i(beat_in && !mid_frame_q), .wr_data_i({s_axis_c2h_ctrl_qid, s_axis_c2h_ctrl_len}), .wr_ready_o(frame_room),
    .rd_valid_o(frame_valid), .rd_data_o(frame), .rd_en_i(frame_valid && frame_ready),
    .count_o(unused_frames));

  // ---- Contexts ----
  logic       peek, ctxt_valid, ctxt_err, context_idle;
  logic [3:0] ctxt_size_index;

  qdma_prefetch_context #(.NumQueue(NumQueue)) u_context (
    .clk, .rstn,
    .ctxt_valid_i, .ctxt_i, .ctxt_done_o, .ctxt_rdata_o, .peek_o(peek), .peeked_i(look_i),
    .look_qid_i(look_qid_o), .valid_o(ctxt_valid), .err_o(ctxt_err), .buffer_size_index_o(ctxt_size_index),
    .pfch_qid_i, .pfch_may_o, .pfch_en_o, .news_valid_i, .news_qid_i, .look2_qid_o, .look2_i,
    .idle_o(context_idle));

  // ---- Decision ----
  logic       put, undo, room, free, decided, verdict_room, verdict_valid, verdict_ready, popping, at_hand, stopped;
  addr_t      put_addr, addr;
  logic [4:0] undo_count, free_count, place;
  verdict_t   verdict_in, verdict;
  logic [4:0] verdicts;

  qdma_c2h_decide #(.NumQueue(NumQueue)) u_decide (
    .clk, .rstn, .buffer_size_i(config_i.buffer_size),
    .frame_valid_i(frame_valid), .frame_i(frame), .frame_ready_o(frame_ready),
    .peek_i(peek), .peek_qid_i(ctxt_i.qid), .look_qid_o, .look_i,
    .ctxt_valid_i(ctxt_valid), .ctxt_err_i(ctxt_err), .ctxt_size_index_i(ctxt_size_index),
    .pop_valid_o, .pop_qid_o, .demand_valid_o, .demand_qid_o, .demand_count_o,
    .put_o(put), .put_addr_o(put_addr), .undo_o(undo), .undo_count_o(undo_count), .room_i(room),
    .verdict_valid_o(decided), .verdict_o(verdict_in), .verdict_ready_i(verdict_room), .popping_o(popping), .at_hand_o(at_hand),
    .stopped_o(stopped));

  qdma_c2h_buffers u_buffers (
    .clk, .rstn, .put_i(put), .put_addr_i(put_addr), .undo_i(undo), .undo_count_i(undo_count), .room_o(room),
    .place_i(place), .addr_o(addr), .free_i(free), .free_count_i(free_count));

  sync_fifo #(.Width($bits(verdict_t)), .Depth(16)) u_verdicts (
    .clk, .rstn,
    .wr_en_i(decided), .wr_data_i(verdict_in), .wr_ready_o(verdict_room),
    .rd_valid_o(verdict_valid), .rd_data_o(verdict), .rd_en_i(verdict_ready),
    .count_o(verdicts));

  // ---- Writes ----
  logic frame_end;

  qdma_c2h_scatter u_scatter (
    .clk, .rstn,
    .beat_valid_i(beat_valid), .beat_data_i(beat_data), .beat_last_i(beat_last), .beat_mty_i(beat_mty),
    .beat_ready_o(beat_ready),
    .verdict_valid_i(verdict_valid), .verdict_i(verdict), .verdict_ready_o(verdict_ready), .kill_i(kill_left_q == 5'd1),
    .place_o(place), .addr_i(addr), .free_o(free), .free_count_o(free_count),
    .pay_valid_o, .pay_o, .pay_ready_i, .frame_done_valid_o, .frame_done_o, .frame_done_ready_i,
    .frame_end_o(frame_end), .fault_o);

  // ---- The youngest frame, if it is decided and its last beat has not come. If its queue is stopped it is lost; its verdict is
  // the last of those in the FIFO. ----
  logic [4:0] kill_left_q;                            // verdicts up to and with that of the lost frame
  wire        partial = mid_frame_q && !frame_valid && !at_hand && open_q != '0;

  always_ff @(posedge clk) begin
    if (!rstn)                                            kill_left_q <= '0;
    else if (kill_left_q == '0 && partial && stopped)     kill_left_q <= verdicts - 5'(verdict_ready);
    else if (kill_left_q != '0 && verdict_ready)          kill_left_q <= kill_left_q - 1'b1;
  end

  // ---- Fence: how many decided frames must still end. Taken two cycles after the pulse, when no look-up from before it
  // decides any more, and not amid a frame's pops: if that frame is taken back, nobody must wait for it. ----
  logic [1:0] settle_q;
  logic       snap_q;                                 // the count is still to be taken
  logic       drain_q;                                // what was written of a partial frame is still to be taken
  logic [5:0] open_q, due_q;                          // frames: decided and not ended; those of them that the fence awaits
  wire  [5:0] open_d   = open_q + 6'(decided) - 6'(frame_end);
  wire        snapshot = snap_q && settle_q == '0 && !popping;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      settle_q     <= '0;
      snap_q       <= 1'b0;
      drain_q      <= 1'b0;
      open_q       <= '0;
      due_q        <= '0;
      fence_busy_o <= 1'b0;
    end else begin
      open_q   <= open_d;
      settle_q <= {settle_q[0], fence_i};
      if (fence_i)       snap_q <= 1'b1;
      else if (snapshot) snap_q <= 1'b0;
      if (snapshot)                         due_q <= open_d - 6'(partial);
      else if (frame_end && due_q != '0)    due_q <= due_q - 1'b1;
      if (snapshot) drain_q <= partial;
      else if (due_q == '0 && (!pay_valid_o || pay_ready_i) && !(kill_left_q == '0 && partial && stopped)) drain_q <= 1'b0;
      fence_busy_o <= !fault_fence && (fence_i || snap_q || due_q != '0 || drain_q);
    end
  end

  // A frame's first beat is here until the frame is decided; then it is open until its end.
  assign idle_o = context_idle && !beat_valid && !mid_frame_q && open_q == '0 && !frame_done_valid_o;

  `ONIC_ASSERT(FramesFit_A, clk, rstn, !(beat_in && !mid_frame_q && !frame_room), "more frames inside than beats")
  `ONIC_ASSERT(OpenFrames_A, clk, rstn, open_q <= 6'd18, "more frames are decided than their FIFOs hold")

  wire unused_config = ^config_i;                     // all of it but the buffer sizes
endmodule
`default_nettype wire
