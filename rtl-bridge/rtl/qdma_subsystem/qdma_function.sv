// One PCIe function's receive side: hashes each frame, finds its queue, and offers it to the arbiter.
//
//   box 250 -> beat FIFO ----------------------> frame out, with queue and length on every beat
//        \---> hash -> table -> result FIFO --/
//
// A frame waits in the beat FIFO until its result is there; a frame whose table entry names no queue of this function
// is read and thrown away, and frame_drop_o says so. One beat per cycle at either end; s_axis_tready is a register. A
// frame of one beat takes 5 cycles from input to output. Frames longer than the FIFO pass: the result is there with
// the second beat.
//
// tkeep is not looked at: tuser_size on the first beat is the frame's length (shell.md section 11.1).
//
// axis_aresetn resets the registers at once, stream_rstn the path: it forgets the frames inside, and the rest of a frame
// that was coming in when it fell is thrown away unseen when it comes.
`include "onic_assert.svh"
`default_nettype none
module qdma_function (
  input  wire          axis_aclk,
  input  wire          axis_pwr_rstn,           // power-up: no frame is coming in
  input  wire          axis_aresetn,            // registers
  input  wire          stream_rstn,             // path; falls only while no frame of this function is half out
  // Register bus, addresses within the function's page
  input  wire          reg_wr_i,
  input  wire          reg_rd_i,
  input  wire   [11:0] reg_addr_i,
  input  wire   [31:0] reg_wdata_i,
  output logic  [31:0] reg_rdata_o,
  // QCONF, for the H2C range match
  output logic  [15:0] q_base_o,
  output logic  [15:0] num_q_o,
  // Frames from box 250
  input  wire          s_axis_tvalid,
  input  wire  [511:0] s_axis_tdata,
  input  wire          s_axis_tlast,
  input  wire   [15:0] s_axis_tuser_size,
  output logic         s_axis_tready,
  // Frames to the arbiter; ctrl_* stand for the whole frame
  output logic         m_axis_tvalid,
  output logic [511:0] m_axis_tdata,
  output logic         m_axis_tlast,
  output logic  [10:0] m_axis_ctrl_qid,
  output logic  [15:0] m_axis_ctrl_len,
  input  wire          m_axis_tready,
  // Events, one cycle for each frame
  output logic         frame_in_o,              // its last beat came in
  output logic         frame_drop_o,            // its last beat was thrown away
  // Monitor, one pulse for each frame
  output logic         rss_valid_o,
  output logic  [31:0] rss_hash_o,
  output logic  [15:0] rss_entry_o,
  output logic         rss_drop_o
);
  localparam int unsigned BeatDepth = 32;       // beats, as upstream's beat FIFO
  // Each frame that has a result but not left still has a beat in the beat FIFO, or is alone and on its way through:
  // so the result FIFO, of the same depth, can't overflow.
  localparam int unsigned ResultDepth = BeatDepth;

  // ---- In: all beats but those of a frame that began before a reset ----
  logic mid_frame_q;                            // a frame's first beat has come, its last has not
  logic dead_q;                                 // and a reset lay between

  wire handshake  = s_axis_tvalid && s_axis_tready;
  wire beat_taken = handshake && !dead_q;

  always_ff @(posedge axis_aclk) begin
    if (!axis_pwr_rstn) mid_frame_q <= 1'b0;
    else if (handshake) mid_frame_q <= !s_axis_tlast;
    if (!axis_pwr_rstn)    dead_q <= 1'b0;
    else if (!stream_rstn) dead_q <= handshake ? !s_axis_tlast : mid_frame_q;
    else if (handshake)    dead_q <= dead_q && !s_axis_tlast;
  end

  // ---- Beats ----
  logic         beat_valid, beat_last, beat_pop;
  logic [511:0] beat_data;

  sync_fifo #(.Width(513), .Depth(BeatDepth)) u_beats (
    .clk(axis_aclk), .rstn(stream_rstn),
    .wr_en_i(beat_taken), .wr_data_i({s_axis_tlast, s_axis_tdata}), .wr_ready_o(s_axis_tready),
    .rd_valid_o(beat_valid), .rd_data_o({beat_last, beat_data}), .rd_en_i(beat_pop),
    .count_o(unused_beat_count)
  );
  wire [$clog2(BeatDepth):0] unused_beat_count;

  // ---- Queue ----
  logic [319:0] hash_key;
  logic         table_wr;
  logic   [6:0] table_addr;
  logic  [15:0] table_wdata, table_rdata;
  logic         hash_valid;
  logic  [31:0] hash;
  logic  [15:0] hash_len_bytes;
  logic  [10:0] rss_qid;
  logic  [15:0] rss_len_bytes;

  qdma_function_regs u_regs (
    .axis_aclk, .axis_aresetn,
    .reg_wr_i, .reg_rd_i, .reg_addr_i, .reg_wdata_i, .reg_rdata_o,
    .q_base_o, .num_q_o, .hash_key_o(hash_key),
    .table_wr_o(table_wr), .table_addr_o(table_addr), .table_wdata_o(table_wdata), .table_rdata_i(table_rdata)
  );

  rss_hash u_hash (
    .axis_aclk, .axis_aresetn(stream_rstn),
    .beat_valid_i(beat_taken), .beat_data_i(s_axis_tdata), .beat_last_i(s_axis_tlast),
    .frame_len_bytes_i(s_axis_tuser_size),
    .hash_key_i(hash_key),
    .hash_valid_o(hash_valid), .hash_o(hash), .hash_len_bytes_o(hash_len_bytes)
  );

  rss_indirection u_indirection (
    .axis_aclk, .axis_aresetn, .stream_rstn,
    .table_wr_i(table_wr), .table_addr_i(table_addr), .table_wdata_i(table_wdata), .table_rdata_o(table_rdata),
    .q_base_i(q_base_o), .num_q_i(num_q_o),
    .hash_valid_i(hash_valid), .hash_i(hash), .hash_len_bytes_i(hash_len_bytes),
    .rss_valid_o, .rss_hash_o, .rss_entry_o, .rss_drop_o,
    .rss_qid_o(rss_qid), .rss_len_bytes_o(rss_len_bytes)
  );

  typedef struct packed {
    logic        drop;
    logic [10:0] qid;
    logic [15:0] len_bytes;
  } result_t;
  result_t result;
  logic    result_valid, result_pop, result_ready;

  sync_fifo #(.Width($bits(result_t)), .Depth(ResultDepth)) u_results (
    .clk(axis_aclk), .rstn(stream_rstn),
    .wr_en_i(rss_valid_o), .wr_data_i({rss_drop_o, rss_qid, rss_len_bytes}), .wr_ready_o(result_ready),
    .rd_valid_o(result_valid), .rd_data_o(result), .rd_en_i(result_pop),
    .count_o(unused_result_count)
  );
  wire [$clog2(ResultDepth):0] unused_result_count;

  // ---- Out ----
  wire head_valid = beat_valid && result_valid;

  assign m_axis_tvalid   = head_valid && !result.drop;
  assign m_axis_tdata    = beat_data;
  assign m_axis_tlast    = beat_last;
  assign m_axis_ctrl_len = result.len_bytes;
  assign beat_pop        = head_valid && (result.drop || m_axis_tready);
  assign result_pop      = beat_pop && beat_last;
  assign frame_in_o      = beat_taken && s_axis_tlast;
  assign frame_drop_o    = result_pop && result.drop;

  // ---- Fault 6 for the alarm tests: the frame after one that met a stall keeps that one's queue. ----
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  logic        stalled_q, stale_q;
  logic [10:0] last_qid_q;
  always_ff @(posedge axis_aclk) begin
    stalled_q <= stream_rstn && !result_pop && (stalled_q || (m_axis_tvalid && !m_axis_tready));
    if (!stream_rstn) stale_q <= 1'b0;
    else if (result_pop) stale_q <= stalled_q && fault == 6;
    if (result_pop) last_qid_q <= result.qid;
  end
  assign m_axis_ctrl_qid = stale_q ? last_qid_q : result.qid;
`else
  assign m_axis_ctrl_qid = result.qid;
`endif

  // ---- Rules of use ----
  // A user's plugin may get tuser_size wrong; the QDMA would then take a length that the data do not have.
  logic [9:0] beats_out_q;                      // of the frame at the head, wraps for frames no length can describe
  always_ff @(posedge axis_aclk) begin
    if (!stream_rstn || result_pop) beats_out_q <= '0;
    else if (beat_pop)               beats_out_q <= beats_out_q + 1'b1;
  end
  `ONIC_ASSERT(SizeMatchesBeats_A, axis_aclk, stream_rstn,
               !(m_axis_tvalid && m_axis_tready && beat_last)
               || 10'((17'(result.len_bytes) + 17'd63) >> 6) == beats_out_q + 10'd1,
               "a frame's tuser_size disagrees with its number of beats")
  `ONIC_ASSERT(ResultRoom_A, axis_aclk, stream_rstn, !(rss_valid_o && !result_ready), "more results than frames")
  `ONIC_ASSERT_STABLE(BoxStable_A, axis_aclk, stream_rstn, s_axis_tvalid, s_axis_tready, s_axis_tdata, 512,
                      "box 250 changed a C2H beat while it was stalled")
  `ONIC_ASSERT_STABLE(BoxSideStable_A, axis_aclk, stream_rstn, s_axis_tvalid, s_axis_tready,
                      {s_axis_tlast, s_axis_tuser_size}, 17, "box 250 changed tlast or tuser_size while it was stalled")

  // ---- What a run should have seen ----
  always_ff @(posedge axis_aclk) begin
    if (stream_rstn) begin
      QueueRange_C: cover (frame_drop_o);
      InStalled_C: cover (s_axis_tvalid && !s_axis_tready);
      OutStalled_C: cover (m_axis_tvalid && !m_axis_tready);
    end
  end
endmodule
`default_nettype wire
