// Joins the shell's completions with how their frames went: a completion waits for the frame that it names.
//
// Both sides come in order of packet ids (16 bits, compared modulo 65536). How a frame went is kept at its packet id, so that
// frames never wait here, however many get no completion: a fence must not need the shell. A completion whose frame came
// before one that was joined is dropped. All others are handed on, with what became of the frame. If frame and completion disagree about the queue, the completion's is used, and a fault says so.
// Latency: 1 cycle from the later side. Throughput: 1 join or drop a cycle. Back-pressure: completions, from a register.
// Out of range: a completion that names a frame more than 32767 ahead of the last one joined counts as late.
//
// Source: qdma.md 5.4, 8; open-nic-shell qdma_subsystem_c2h.sv (packet ids start at 1).
`include "onic_assert.svh"
`default_nettype none
module qdma_completion_join import qdma_pkg::*; #(
  parameter int unsigned CompletionDepth = 4          // completions that wait, a power of two
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
  // Entries
  output logic               entry_valid_o,
  output logic        [63:0] entry_data_o,
  output qid_t               entry_qid_o,
  output outcome_e           entry_outcome_o,         // of its frame
  output drop_e              entry_why_o,             // if that is lost
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
  logic        cpl_valid, cpl_pop;
  wire [$clog2(CompletionDepth):0] unused_cpl_count;

  sync_fifo #(.Width($bits(completion_t)), .Depth(CompletionDepth)) u_completions (
    .clk(clk), .rstn(rstn),
    .wr_en_i(cpl_valid_i && cpl_ready_o), .wr_data_i({cpl_data_i, cpl_qid_i, cpl_pkt_id_i}), .wr_ready_o(cpl_ready_o),
    .rd_valid_o(cpl_valid), .rd_data_o(cpl), .rd_en_i(cpl_pop), .count_o(unused_cpl_count)
  );

  // ---- How frames went, by packet id.
  typedef struct packed {
    qid_t     qid;
    outcome_e outcome;
    drop_e    why;
  } frame_t;

  frame_t      frame_mem [1 << 16];
  frame_t      frame;
  logic [15:0] done_q;                                // the last frame that is done
  logic [15:0] joined_q;                              // the last frame whose completion came

  always_ff @(posedge clk) if (frame_valid_i) frame_mem[frame_i.pkt_id] <= '{qid: frame_i.qid, outcome: frame_i.outcome, why: frame_i.why};
  assign frame = frame_mem[cpl.pkt_id];

  // ---- The completion at the head.
  wire  [15:0] since = cpl.pkt_id - joined_q;         // 0 or negative: its frame is past
  wire  [15:0] ahead = cpl.pkt_id - done_q;           // positive: its frame is not done
  wire         late  = since == '0 || since[15];
  wire         done  = ahead == '0 || ahead[15];
  wire         meet  = cpl_valid && !late && done;
  wire         blind = cpl_valid && !late && !done && fault_no_wait;

  always_comb begin
    entry_valid_o = meet || blind;
    drop_o        = cpl_valid && late;
    cpl_pop       = drop_o || (entry_valid_o && entry_ready_i);
  end

  assign idle_o         = !cpl_valid;
  assign entry_data_o   = cpl.data;
  assign entry_qid_o    = cpl.qid;
  assign entry_outcome_o = blind ? FrameWritten : frame.outcome;
  assign entry_why_o     = frame.why;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      done_q   <= '0;
      joined_q <= '0;
      fault_o  <= '0;
    end else begin
      if (frame_valid_i)   done_q   <= frame_i.pkt_id;
      if (cpl_pop && meet) joined_q <= cpl.pkt_id;
      fault_o.kind <= meet && cpl_pop && cpl.qid != frame.qid ? FaultQidMismatch : FaultNone;
      if (cpl_pop) fault_o.qid <= cpl.qid;
    end
  end

  `ONIC_ASSERT(FrameOrder_A, clk, rstn, !frame_valid_i || frame_i.pkt_id == done_q + 16'd1,
               "packet ids of frames do not rise by 1")
endmodule
`default_nettype wire
