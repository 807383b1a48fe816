// Joins the shell's completions with how their frames went: a completion waits for the frame that it names.
//
// Both sides come in order of packet ids (16 bits, compared modulo 65536). A frame that no completion names is skipped; a
// completion whose frame is past is dropped. FrameWritten gives an entry, FrameFailed one with the error bit, FrameLost drops
// the completion. If frame and completion disagree about the queue, the completion's is used, and a fault says so.
// Latency: 1 cycle from the later side. Throughput: 1 join, skip or drop a cycle. Back-pressure: both sides, from registers.
//
// Source: qdma.md 5.4, 8; open-nic-shell qdma_subsystem_c2h.sv (packet ids start at 1).
`include "onic_assert.svh"
`default_nettype none
module qdma_completion_join import qdma_pkg::*; #(
  parameter int unsigned CompletionDepth = 4,         // completions that wait, a power of two
  parameter int unsigned FrameDepth      = 64         // frames that wait, a power of two
) (
  input  wire                clk,
  input  wire                rstn,                    // synchronous, active low
  // Completions
  input  wire                cpl_valid_i,
  input  wire         [63:0] cpl_data_i,
  input  wire qid_t          cpl_qid_i,
  input  wire         [15:0] cpl_pkt_id_i,
  output logic               cpl_ready_o,
  // Frames
  input  wire                frame_valid_i,
  input  wire frame_done_t   frame_i,
  output logic               frame_ready_o,
  // Entries
  output logic               entry_valid_o,
  output logic        [63:0] entry_data_o,
  output qid_t               entry_qid_o,
  output logic               entry_failed_o,
  input  wire                entry_ready_i,
  // Events
  output logic               drop_o,                  // a completion was dropped, same cycle
  output fault_t             fault_o,                 // FaultQidMismatch, a register
  output logic               idle_o                   // no completion waits; frames may, for completions that have not come
);
  // ---- Fault for the alarm tests: 18 does not wait for the payload. ----
  logic fault_no_wait;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_no_wait = fault == 18;
`else
  assign fault_no_wait = 1'b0;
`endif

  typedef struct packed {
    logic [63:0] data;
    qid_t        qid;
    logic [15:0] pkt_id;
  } completion_t;

  completion_t cpl;
  frame_done_t frame;
  logic        cpl_valid, cpl_pop, frame_valid, frame_pop;
  wire [$clog2(CompletionDepth):0] unused_cpl_count;
  wire [$clog2(FrameDepth):0]      unused_frame_count;

  sync_fifo #(.Width($bits(completion_t)), .Depth(CompletionDepth)) u_completions (
    .clk(clk), .rstn(rstn),
    .wr_en_i(cpl_valid_i && cpl_ready_o), .wr_data_i({cpl_data_i, cpl_qid_i, cpl_pkt_id_i}), .wr_ready_o(cpl_ready_o),
    .rd_valid_o(cpl_valid), .rd_data_o(cpl), .rd_en_i(cpl_pop), .count_o(unused_cpl_count)
  );
  sync_fifo #(.Width($bits(frame_done_t)), .Depth(FrameDepth)) u_frames (
    .clk(clk), .rstn(rstn),
    .wr_en_i(frame_valid_i && frame_ready_o), .wr_data_i(frame_i), .wr_ready_o(frame_ready_o),
    .rd_valid_o(frame_valid), .rd_data_o(frame), .rd_en_i(frame_pop), .count_o(unused_frame_count)
  );

  // ---- Heads of the two, compared. The last frame that left tells that a completion is late although no frame waits.
  logic [15:0] last_frame_q;
  wire  [15:0] fresh   = cpl.pkt_id - last_frame_q;   // 0 or negative: its frame has left
  wire  [15:0] ahead   = cpl.pkt_id - frame.pkt_id;   // positive: its frame is behind the head
  wire         late    = fresh == '0 || fresh[15] || (frame_valid && ahead[15]);
  wire         meet    = cpl_valid && frame_valid && ahead == '0 && !late;
  wire         blind   = cpl_valid && !frame_valid && !late && fault_no_wait;

  always_comb begin
    entry_valid_o  = (meet && frame.outcome != FrameLost) || blind;
    drop_o         = cpl_valid && (late || (meet && frame.outcome == FrameLost));
    cpl_pop        = drop_o || (entry_valid_o && entry_ready_i);
    frame_pop      = meet ? cpl_pop : cpl_valid && frame_valid && !late;
  end

  assign idle_o         = !cpl_valid;
  assign entry_data_o   = cpl.data;
  assign entry_qid_o    = cpl.qid;
  assign entry_failed_o = frame.outcome == FrameFailed && !blind;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      last_frame_q <= '0;
      fault_o      <= '0;
    end else begin
      if (frame_pop) last_frame_q <= frame.pkt_id;
      fault_o.kind <= meet && cpl_pop && cpl.qid != frame.qid ? FaultQidMismatch : FaultNone;
      if (cpl_pop) fault_o.qid <= cpl.qid;
    end
  end

  // The frames' own order is ours to trust.
  logic        frame_seen_q;
  logic [15:0] frame_id_q;
  wire  [15:0] frame_step = frame_i.pkt_id - frame_id_q;
  always_ff @(posedge clk) begin
    if (!rstn) frame_seen_q <= 1'b0;
    else if (frame_valid_i && frame_ready_o) begin
      frame_seen_q <= 1'b1;
      frame_id_q   <= frame_i.pkt_id;
    end
  end
  `ONIC_ASSERT(FrameOrder_A, clk, rstn,
               !(frame_valid_i && frame_ready_o && frame_seen_q) || (frame_step != '0 && !frame_step[15]),
               "packet ids of frames do not rise")
  `ONIC_ASSERT_STABLE(FrameStable_A, clk, rstn, frame_valid_i, frame_ready_o, frame_i, $bits(frame_done_t),
                      "frame_done changed while it waited")
endmodule
`default_nettype wire
