// Packet-mode FIFO between two clocks: a frame becomes visible only when it is whole, and can be taken back until then.
//
// The writer stores beats, then either commits the frame with its last beat (and MetaWidth bits that belong to the
// frame), or rewinds, which frees the open frame's beats at once. The reader sees committed frames only, so a frame that
// has started to leave never waits for its own next beat: while m_axis_tready is high there is no gap inside a frame.
//
// Holds Depth beats, and so at most Depth frames, plus the beat in the output register. 1 beat in and 1 out per cycle of
// either clock. A commit is visible 4 to 5 rd_clk edges later. What crosses are two gray-coded counters that move one
// step at a time: frames committed one way (a commit moves the beat pointer by many), beats read the other way.
//
// Reset: the writer forgets everything at once. The reader does too, unless it has begun a frame: then it finishes that
// frame first, since what follows would otherwise be glued to its head, and the writer stays in reset until it has. A
// first beat that is offered but not taken counts as begun, unless WithdrawOffer allows to take it back: for a receiver that may refuse for ever.
// wr_live_o and rd_live_o tell when each side works. Both resets must be low together for at least eight cycles of the
// slower clock. pwr_rstn resets at once, whatever is open.
`include "onic_assert.svh"
`default_nettype none
module packet_fifo #(
  parameter  int unsigned DataWidth = 512,            // bits, a multiple of 8
  parameter  int unsigned MetaWidth = 1,              // bits that go with each frame
  parameter  int unsigned Depth     = 64,             // beats, a power of two
  parameter  bit          WithdrawOffer = 1'b0,
  localparam int unsigned KeepWidth = DataWidth / 8,
  localparam int unsigned AddrWidth = $clog2(Depth)
) (
  // Write
  input  wire                  wr_clk,
  input  wire                  wr_rstn,
  output logic                 wr_live_o,             // out of reset
  input  wire                  wr_en_i,               // store this beat; only while wr_room_o is not 0
  input  wire  [DataWidth-1:0] wr_data_i,
  input  wire  [KeepWidth-1:0] wr_keep_i,
  input  wire                  wr_last_i,
  input  wire                  wr_commit_i,           // with wr_en_i and wr_last_i
  input  wire  [MetaWidth-1:0] wr_meta_i,             // taken with wr_commit_i
  input  wire                  wr_rewind_i,           // forget the open frame; never with wr_en_i
  output logic   [AddrWidth:0] wr_room_o,             // beats free now, pessimistic
  // Read
  input  wire                  rd_clk,
  input  wire                  rd_rstn,
  input  wire                  rd_pwr_rstn,           // power-up reset
  output logic                 rd_live_o,             // out of reset, and no frame left over from before it
  output logic                 m_axis_tvalid,
  output logic [DataWidth-1:0] m_axis_tdata,
  output logic [KeepWidth-1:0] m_axis_tkeep,
  output logic                 m_axis_tlast,
  output logic [MetaWidth-1:0] m_axis_tmeta,          // the frame's, on each of its beats
  input  wire                  m_axis_tready
);
  `ONIC_ASSERT_PARAM(Depth, Depth >= 4 && (Depth & (Depth - 1)) == 0, "Depth must be a power of two, at least 4")

  // One memory each, so that no 577-bit word is put together and taken apart again.
  logic [DataWidth-1:0] data_mem [Depth];
  logic [KeepWidth-1:0] keep_mem [Depth];
  logic                 last_mem [Depth];
  logic [MetaWidth-1:0] meta_mem [Depth];             // indexed by frame number, not by beat

  // ---- Resets: the reader's lasts until its open frame is finished, the writer's until the reader's is over. ----
  logic rd_pending_q, rd_pending_seen;
  logic rd_open_q;                                    // a frame is loaded in part

  logic mid_frame_q;                                  // a beat of a frame has been taken, its last has not

  wire rd_pending = rd_pending_q || !rd_rstn;
  wire take       = m_axis_tvalid && m_axis_tready;
  wire begun      = WithdrawOffer ? mid_frame_q || (take && !m_axis_tlast) : m_axis_tvalid || rd_open_q;
  wire rd_clear   = rd_pending && !begun;
  always_ff @(posedge rd_clk) begin
    rd_pending_q <= !rd_rstn || (rd_pending_q && !rd_clear);
    if (!rd_pwr_rstn) mid_frame_q <= 1'b0;
    else if (take)    mid_frame_q <= !m_axis_tlast;
  end
  cdc_sync #(.ResetValue(1'b1)) u_pending (
    .dst_clk(wr_clk), .dst_rstn(1'b1), .d_i(rd_pending_q), .q_o(rd_pending_seen));
  assign wr_live_o = wr_rstn && !rd_pending_seen;
  assign rd_live_o = !rd_pending;

  // ---- Write side ----
  logic [AddrWidth:0] wr_ptr_q, frame_start_q;        // next beat; first beat of the open frame
  logic [AddrWidth:0] committed_q, committed_seen;    // frames
  logic [AddrWidth:0] rd_ptr_q, rd_ptr_seen;          // beats

  assign wr_room_o = (AddrWidth + 1)'(Depth) - (wr_ptr_q - rd_ptr_seen);

  always_ff @(posedge wr_clk) begin
    if (!wr_live_o) begin
      wr_ptr_q      <= '0;
      frame_start_q <= '0;
      committed_q   <= '0;
    end else if (wr_en_i) begin
      wr_ptr_q <= wr_ptr_q + 1'b1;
      if (wr_commit_i) begin
        frame_start_q <= wr_ptr_q + 1'b1;
        committed_q   <= committed_q + 1'b1;
      end
    end else if (wr_rewind_i) begin
      wr_ptr_q <= frame_start_q;
    end
  end

  always_ff @(posedge wr_clk) begin
    if (wr_en_i) begin
      data_mem[wr_ptr_q[AddrWidth-1:0]] <= wr_data_i;
      keep_mem[wr_ptr_q[AddrWidth-1:0]] <= wr_keep_i;
      last_mem[wr_ptr_q[AddrWidth-1:0]] <= wr_last_i;
      if (wr_commit_i) meta_mem[committed_q[AddrWidth-1:0]] <= wr_meta_i;
    end
  end

  cdc_gray #(.Width(AddrWidth + 1)) u_committed (
    .src_clk(wr_clk), .src_rstn(wr_live_o), .count_i(committed_q),
    .dst_clk(rd_clk), .dst_rstn(!rd_clear), .count_o(committed_seen));
  cdc_gray #(.Width(AddrWidth + 1)) u_read (
    .src_clk(rd_clk), .src_rstn(!rd_clear), .count_i(rd_ptr_q),
    .dst_clk(wr_clk), .dst_rstn(wr_live_o), .count_o(rd_ptr_seen));

  // ---- Read side: one output register, loaded whenever it is free and a beat of a whole frame is there. ----
  logic [AddrWidth:0] frames_read_q;                  // frames whose last beat has been loaded

  wire load_last = last_mem[rd_ptr_q[AddrWidth-1:0]];
  wire load      = (rd_pending ? rd_open_q : frames_read_q != committed_seen) && (!m_axis_tvalid || m_axis_tready);

  always_ff @(posedge rd_clk) begin
    if (rd_clear || !rd_pwr_rstn) begin
      rd_ptr_q      <= '0;
      frames_read_q <= '0;
      rd_open_q     <= 1'b0;
      m_axis_tvalid <= 1'b0;
    end else if (load) begin
      rd_ptr_q      <= rd_ptr_q + 1'b1;
      rd_open_q     <= !load_last;
      m_axis_tvalid <= 1'b1;
      if (load_last) frames_read_q <= frames_read_q + 1'b1;
    end else if (m_axis_tready) begin
      m_axis_tvalid <= 1'b0;
    end
  end

  always_ff @(posedge rd_clk) begin
    if (load) begin
      m_axis_tdata <= data_mem[rd_ptr_q[AddrWidth-1:0]];
      m_axis_tkeep <= keep_mem[rd_ptr_q[AddrWidth-1:0]];
      m_axis_tlast <= load_last;
      m_axis_tmeta <= meta_mem[frames_read_q[AddrWidth-1:0]];
    end
  end

  // ---- Rules of use ----
  `ONIC_ASSERT(FifoFullWrite_A, wr_clk, wr_live_o, !(wr_en_i && wr_room_o == '0), "beat stored without room")
  `ONIC_ASSERT(FifoRoom_A, wr_clk, wr_live_o, wr_room_o <= (AddrWidth + 1)'(Depth), "more beats inside than the memory holds")
  `ONIC_ASSERT(FifoCommit_A, wr_clk, wr_live_o, !wr_en_i || wr_commit_i == wr_last_i, "a stored last beat, and no other, commits")
  `ONIC_ASSERT(FifoRewind_A, wr_clk, wr_live_o, !(wr_rewind_i && wr_en_i), "rewind and store in one cycle")
  `ONIC_ASSERT(FifoFrameBeats_A, wr_clk, wr_live_o, wr_ptr_q - frame_start_q <= (AddrWidth + 1)'(Depth),
               "the open frame is longer than the memory")

  // A frame that started to leave has its next beat ready when the last one is taken.
  `ONIC_ASSERT(FifoNoGap_A, rd_clk, rd_pwr_rstn, !(mid_frame_q && !m_axis_tvalid), "a gap inside a frame")
endmodule
`default_nettype wire
