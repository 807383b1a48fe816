// Transmit side of one port's packet adapter: 250 MHz to MAC clock, in packet mode, whole frames or none.
//
// A frame whose tuser_dst (first beat) lacks this port's bit is dropped; so is one of more than Depth beats, which would
// otherwise wait for ever for room (upstream quirk Q7). Each frame's end is reported once, on axis_aclk for the monitor
// and on cmac_clk for the counters. Frames leave without gaps inside; tuser_err is 0.
//
// The last beat's tkeep is rebuilt from tuser_size when that is no multiple of 64, otherwise tkeep is used as given.
// Back-pressure honoured; s_axis_tx_tready does not depend on this cycle's inputs.
// Latency of a one-beat frame into an empty buffer: 1 axis_aclk + 4 to 5 cmac_clk cycles.
// Source: shell.md 12.1.
`include "onic_assert.svh"
`default_nettype none
module packet_adapter_tx #(
  parameter int unsigned PortId = 0,                  // 0 to 9
  parameter int unsigned Depth  = 64                  // beats
) (
  input  wire          axis_aclk,
  input  wire          axis_rstn,
  input  wire          axis_pwr_rstn,                 // power-up reset: no frame is open
  // Frames in
  input  wire          s_axis_tx_tvalid,
  input  wire  [511:0] s_axis_tx_tdata,
  input  wire   [63:0] s_axis_tx_tkeep,
  input  wire          s_axis_tx_tlast,
  input  wire   [15:0] s_axis_tx_tuser_size,
  input  wire   [15:0] s_axis_tx_tuser_dst,
  output logic         s_axis_tx_tready,
  // Each frame's end, one pulse a frame
  output logic         mon_end_valid_o,               // axis_aclk
  output logic   [3:0] mon_end_reason_o,
  output logic         end_valid_o,                   // cmac_clk
  output logic   [3:0] end_reason_o,
  output logic  [15:0] end_len_o,                     // tuser_size of the last beat
  output logic         handed_o,                      // a frame left to box 322
  output logic         live_o,                        // out of reset, which lasts until a frame that has begun to leave is out
  // Frames out
  input  wire          cmac_clk,
  input  wire          cmac_rstn,
  input  wire          cmac_pwr_rstn,
  output logic         m_axis_tx_tvalid,
  output logic [511:0] m_axis_tx_tdata,
  output logic  [63:0] m_axis_tx_tkeep,
  output logic         m_axis_tx_tlast,
  output logic         m_axis_tx_tuser_err,
  input  wire          m_axis_tx_tready
);
  import packet_adapter_pkg::*;
  localparam int unsigned RoomWidth = $clog2(Depth) + 1;

  logic                 mid_frame_q;
  logic                 dead_q;                       // began before the end of a reset
  logic                 dst_lost_q, long_lost_q;
  logic [RoomWidth-1:0] beats_q;                      // beats so far, stops at Depth
  logic [RoomWidth-1:0] room;
  logic                 event_room;
  logic                 axis_live;                    // the input side is out of reset

  // A frame that fills the buffer by itself has to be let in to be thrown away.
  wire too_long = beats_q == RoomWidth'(Depth);
  assign s_axis_tx_tready = axis_live && event_room && (room != '0 || too_long || long_lost_q);

  wire take       = s_axis_tx_tvalid && s_axis_tx_tready;
  wire last       = s_axis_tx_tlast;
  wire dead       = mid_frame_q && dead_q;
  wire dst_lost   = mid_frame_q ? dst_lost_q : !s_axis_tx_tuser_dst[6 + PortId];
  wire store      = take && !dead && !dst_lost && !too_long && !long_lost_q;
  wire rewind     = take && !dead && !dst_lost && too_long && !long_lost_q;
  wire [3:0] reason = dead || dst_lost ? ReasonTxDst : too_long || long_lost_q ? ReasonTxTooLong : ReasonAccepted;

  // The last beat's byte mask. Size 0 modulo 64 leaves the given one.
  wire [5:0]  tail_bytes = s_axis_tx_tuser_size[5:0];
  wire [63:0] keep = last && tail_bytes != '0 ? ~(64'hFFFF_FFFF_FFFF_FFFF << tail_bytes) : s_axis_tx_tkeep;

  always_ff @(posedge axis_aclk) begin
    mon_end_valid_o <= take && last;
    if (take) begin
      mid_frame_q <= !last;
      dead_q      <= dead && !last;
      dst_lost_q  <= dst_lost;
      long_lost_q <= !last && (long_lost_q || (too_long && !dst_lost && !dead));
      beats_q     <= last || dst_lost || dead ? '0 : too_long ? beats_q : beats_q + 1'b1;
      if (last) mon_end_reason_o <= reason;
    end
    if (!axis_live) begin
      // mid_frame_q lives on: the tail of a frame that was cut by the reset is dropped.
      dead_q      <= 1'b1;
      long_lost_q <= 1'b0;
      beats_q     <= '0;
    end
    if (!axis_pwr_rstn) mid_frame_q <= 1'b0;
  end

  // ---- The buffer ----
  logic unused_meta;
  // A MAC that is off refuses for ever, so a reset takes an offered beat back.
  packet_fifo #(.DataWidth(512), .MetaWidth(1), .Depth(Depth), .WithdrawOffer(1'b1)) u_buffer (
    .wr_clk(axis_aclk), .wr_rstn(axis_rstn), .wr_live_o(axis_live),
    .wr_en_i(store), .wr_data_i(s_axis_tx_tdata), .wr_keep_i(keep), .wr_last_i(last),
    .wr_commit_i(store && last), .wr_meta_i(1'b0), .wr_rewind_i(rewind), .wr_room_o(room),
    .rd_clk(cmac_clk), .rd_rstn(cmac_rstn), .rd_pwr_rstn(cmac_pwr_rstn), .rd_live_o(live_o),
    .m_axis_tvalid(m_axis_tx_tvalid), .m_axis_tdata(m_axis_tx_tdata), .m_axis_tkeep(m_axis_tx_tkeep),
    .m_axis_tlast(m_axis_tx_tlast), .m_axis_tmeta(unused_meta), .m_axis_tready(m_axis_tx_tready)
  );
  assign m_axis_tx_tuser_err = 1'b0;
  assign handed_o            = m_axis_tx_tvalid && m_axis_tx_tready && m_axis_tx_tlast;

  // ---- Ends, for the counters in the MAC's clock ----
  logic        event_valid;
  logic [19:0] event_data;
  async_fifo #(.Width(20), .Depth(16)) u_events (
    .wr_clk(axis_aclk), .wr_rstn(axis_rstn), .wr_en_i(take && last), .wr_data_i({reason, s_axis_tx_tuser_size}),
    .wr_ready_o(event_room),
    .rd_clk(cmac_clk), .rd_rstn(cmac_rstn), .rd_valid_o(event_valid), .rd_data_o(event_data), .rd_en_i(event_valid)
  );
  always_ff @(posedge cmac_clk) begin
    end_valid_o <= event_valid && cmac_rstn;
    if (event_valid) {end_reason_o, end_len_o} <= event_data;
  end

  // tdata is checked by the slice in front; here only what this block relies on.
  `ONIC_ASSERT_STABLE(AxisStable_A, axis_aclk, axis_pwr_rstn, s_axis_tx_tvalid, s_axis_tx_tready,
                      {s_axis_tx_tlast, s_axis_tx_tkeep, s_axis_tx_tuser_size, s_axis_tx_tuser_dst}, 97,
                      "a beat changed while it was stalled")
endmodule
`default_nettype wire
