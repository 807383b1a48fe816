// Receive side of one port's packet adapter: MAC clock to 250 MHz, store and forward, whole frames or none.
//
// The MAC can't be held back, so a frame that can't be taken is lost here, whole, and reported once, with a reason:
//   disabled  it began before the end of this block's reset
//   too long  more than Depth beats, however empty the buffer
//   overflow  a beat found no room
//   error     tuser_err on its last beat
// If several hold, the first in this list counts: it is what was known first.
// A lost frame frees its beats at once and the buffer is never left in a state that costs the next frame.
//
// Out: frames without gaps, tuser_size their length in bytes (FCS left out, as in the input), on each beat;
// tuser_src the port's bit, tuser_dst 0. Back-pressure honoured.
// Latency of a one-beat frame into an empty buffer: 1 cmac_clk + 4 to 5 axis_aclk cycles.
// Source: shell.md 12.2; quirks Q4, Q5, Q10 and Q17 are corrected.
`include "onic_assert.svh"
`default_nettype none
module packet_adapter_rx #(
  parameter  int unsigned PortId    = 0,              // 0 to 9
  parameter  int unsigned Depth     = 64,             // beats
  localparam int unsigned RoomWidth = $clog2(Depth) + 1
) (
  input  wire                  cmac_clk,
  input  wire                  cmac_rstn,
  input  wire                  cmac_pwr_rstn,         // power-up reset: no frame is open
  // Frames in; no ready
  input  wire                  s_axis_rx_tvalid,
  input  wire          [511:0] s_axis_rx_tdata,
  input  wire           [63:0] s_axis_rx_tkeep,
  input  wire                  s_axis_rx_tlast,
  input  wire                  s_axis_rx_tuser_err,
  // Each frame's end, one pulse a frame
  output logic                 end_valid_o,
  output logic           [3:0] end_reason_o,          // packet_adapter's Reason* numbers
  output logic          [15:0] end_len_o,             // bytes
  output logic [RoomWidth-1:0] room_beats_o,          // beats free, pessimistic
  output logic          [15:0] left_o,                // frames that left to box 250, modulo 2^16
  output logic                 live_o,                // out of reset, which lasts until a frame that has begun to leave is out
  // Frames out
  input  wire                  axis_aclk,
  input  wire                  axis_rstn,
  input  wire                  axis_pwr_rstn,
  output logic                 m_axis_rx_tvalid,
  output logic         [511:0] m_axis_rx_tdata,
  output logic          [63:0] m_axis_rx_tkeep,
  output logic                 m_axis_rx_tlast,
  output logic          [15:0] m_axis_rx_tuser_size,
  output logic          [15:0] m_axis_rx_tuser_src,
  output logic          [15:0] m_axis_rx_tuser_dst,
  input  wire                  m_axis_rx_tready
);
  import packet_adapter_pkg::*;

  // ---- The open frame. Its position is followed in reset too, so that the tail of a frame is never taken for one. ----
  logic                 mid_frame_q;                  // a beat has come, the last has not
  logic                 dead_q;                       // it began in reset
  logic                 lost_q;                       // nothing of it is stored any more
  logic [RoomWidth-1:0] beats_q;                      // beats so far, stops at Depth
  logic                 too_long_q;
  logic          [15:0] len_q;                        // bytes of the beats so far

  logic [RoomWidth-1:0] room;

`ifdef ONIC_FAULTS
  // Fault 5, an uncounted drop: each eighth frame vanishes although everything says that it was accepted.
  int unsigned fault;
  logic [2:0]  accepted_q;
  initial begin
    if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  end
  always_ff @(posedge cmac_clk) begin
    if (!live_o) accepted_q <= '0;
    else if (end_valid_o && end_reason_o == ReasonAccepted) accepted_q <= accepted_q + 1'b1;
  end
  wire silent_loss = fault == 5 && s_axis_rx_tlast && accepted_q == 3'd3;
`else
  localparam bit silent_loss = 1'b0;
`endif

  wire valid     = s_axis_rx_tvalid;
  wire last      = s_axis_rx_tlast;
  wire dead      = !live_o || (mid_frame_q && dead_q);
  wire too_long  = beats_q == RoomWidth'(Depth);
  wire no_room   = room == '0;
  wire bad_end   = last && s_axis_rx_tuser_err;
  wire lose_now  = too_long || no_room || bad_end;
  wire store     = valid && !dead && !lost_q && !lose_now && !silent_loss;
  wire rewind    = valid && !dead && !lost_q && (lose_now || silent_loss);
  wire [15:0] len = len_q + 16'($countones(s_axis_rx_tkeep));

  always_ff @(posedge cmac_clk) begin
    end_valid_o  <= valid && last;
    room_beats_o <= live_o ? room : '0;
    if (valid) begin
      mid_frame_q <= !last;
      dead_q      <= dead;
      lost_q      <= !last && (lost_q || lose_now);
      too_long_q  <= !last && (too_long_q || too_long);
      beats_q     <= last ? '0 : too_long ? beats_q : beats_q + 1'b1;
      len_q       <= last ? '0 : len_q + 16'd64;
      if (last) begin
        end_len_o    <= len;
        end_reason_o <= dead                     ? ReasonDisabled :
                        (too_long || too_long_q) ? ReasonTooLong :
                        (no_room || lost_q)      ? ReasonOverflow :
                        s_axis_rx_tuser_err      ? ReasonError : ReasonAccepted;
      end
    end
    if (!live_o) begin
      // Only what a frame's tail needs lives on.
      dead_q     <= 1'b1;
      lost_q     <= 1'b0;
      too_long_q <= 1'b0;
      beats_q    <= '0;
      len_q      <= '0;
    end
    if (!cmac_pwr_rstn) mid_frame_q <= 1'b0;
  end

  // ---- The buffer ----
  logic axis_live;
  packet_fifo #(.DataWidth(512), .MetaWidth(16), .Depth(Depth)) u_buffer (
    .wr_clk(cmac_clk), .wr_rstn(cmac_rstn), .wr_live_o(live_o),
    .wr_en_i(store), .wr_data_i(s_axis_rx_tdata), .wr_keep_i(s_axis_rx_tkeep), .wr_last_i(last),
    .wr_commit_i(store && last), .wr_meta_i(len), .wr_rewind_i(rewind), .wr_room_o(room),
    .rd_clk(axis_aclk), .rd_rstn(axis_rstn), .rd_pwr_rstn(axis_pwr_rstn), .rd_live_o(axis_live),
    .m_axis_tvalid(m_axis_rx_tvalid), .m_axis_tdata(m_axis_rx_tdata), .m_axis_tkeep(m_axis_rx_tkeep),
    .m_axis_tlast(m_axis_rx_tlast), .m_axis_tmeta(m_axis_rx_tuser_size), .m_axis_tready(m_axis_rx_tready)
  );
  assign m_axis_rx_tuser_src = 16'(1) << (6 + PortId);
  assign m_axis_rx_tuser_dst = '0;

  // ---- Frames that left, back in the MAC's clock ----
  logic [15:0] left_q;
  always_ff @(posedge axis_aclk) begin
    if (!axis_live) left_q <= '0;
    else if (m_axis_rx_tvalid && m_axis_rx_tready && m_axis_rx_tlast) left_q <= left_q + 1'b1;
  end
  cdc_gray #(.Width(16)) u_left (
    .src_clk(axis_aclk), .src_rstn(axis_live), .count_i(left_q),
    .dst_clk(cmac_clk), .dst_rstn(live_o), .count_o(left_o));

  `ONIC_ASSERT(AxisKeepLow_A, cmac_clk, cmac_rstn,
               !s_axis_rx_tvalid || (s_axis_rx_tkeep & (s_axis_rx_tkeep + 1'b1)) == '0,
               "tkeep is not a mask of low bytes")
  `ONIC_ASSERT(AxisKeepFull_A, cmac_clk, cmac_rstn, !s_axis_rx_tvalid || s_axis_rx_tlast || &s_axis_rx_tkeep,
               "a beat before the last is not full")
  `ONIC_ASSERT(AxisSize_A, axis_aclk, axis_rstn, !m_axis_rx_tvalid || m_axis_rx_tuser_size != '0,
               "a frame of no bytes")
endmodule
`default_nettype wire
