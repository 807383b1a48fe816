// Receive side of the MAC of one port: marks frames that a NIC must not take, discards all of them while it is off.
//
// There is no ready: every valid beat is taken, and leaves one cycle later. tuser_err on a frame's last beat is set if it came
// so (bad FCS), or if the frame with its FCS is shorter than min_len_i or longer than max_len_i. A frame counts with the
// receiver on or off as it was at its first beat; one that began in reset is discarded. If a reset cuts a frame that has
// begun to leave, its end is made up: one more beat with tlast and tuser_err, so that what follows is not glued to it.
//
// Each frame gives one wire_o pulse, and either its last beat on m_axis_rx or a disabled_o pulse, in the same cycle.
// (The frame that a reset cuts gives its made-up end when the reset comes and wire_o when its own end arrives.)
`include "onic_assert.svh"
`default_nettype none
module cmac_rx (
  input  wire          cmac_clk,
  input  wire          cmac_rstn,
  input  wire          cmac_pwr_rstn,                 // power-up reset: no frame is open
  input  wire          enable_i,
  input  wire   [15:0] min_len_i,                     // bytes with FCS, quasi static
  input  wire   [15:0] max_len_i,
  // Frames in, without FCS
  input  wire          s_axis_rx_tvalid,
  input  wire  [511:0] s_axis_rx_tdata,
  input  wire   [63:0] s_axis_rx_tkeep,
  input  wire          s_axis_rx_tlast,
  input  wire          s_axis_rx_tuser_err,
  // Frames out; no ready
  output logic         m_axis_rx_tvalid,
  output logic [511:0] m_axis_rx_tdata,
  output logic  [63:0] m_axis_rx_tkeep,
  output logic         m_axis_rx_tlast,
  output logic         m_axis_rx_tuser_err,
  output logic         disabled_o,                    // a frame ended that was discarded
  output logic         wire_o,                        // a frame ended
  // For the statistics, aligned with the beats in
  output logic         stat_beat_o,
  output logic         stat_first_o,
  output logic  [15:0] stat_len_o                     // with the last beat: bytes with FCS
);
  localparam logic [15:0] FcsBytes = 16'd4;

  logic        mid_frame_q;                           // a beat has come, the last has not
  logic        accept_q;                              // the open frame goes on
  logic        cut_q;                                 // its end was made up
  logic [15:0] len_q;                                 // bytes of the beats so far, with FCS

  wire         accept  = mid_frame_q ? accept_q && cmac_rstn : enable_i && cmac_rstn;
  wire         beat    = s_axis_rx_tvalid && accept;
  wire         cut     = !cmac_rstn && mid_frame_q && accept_q;
  wire  [15:0] len     = len_q + 16'($countones(s_axis_rx_tkeep));

  assign stat_beat_o  = beat;
  assign stat_first_o = !mid_frame_q;
  assign stat_len_o   = len;

  always_ff @(posedge cmac_clk) begin
    m_axis_rx_tvalid <= beat || cut;
    wire_o           <= s_axis_rx_tvalid && s_axis_rx_tlast;
    disabled_o       <= s_axis_rx_tvalid && s_axis_rx_tlast && !accept && !cut && !(mid_frame_q && cut_q);
    if (s_axis_rx_tvalid) begin
      mid_frame_q <= !s_axis_rx_tlast;
      accept_q    <= accept;
      cut_q       <= cut || (mid_frame_q && cut_q);
      len_q       <= s_axis_rx_tlast ? FcsBytes : len_q + 16'd64;
    end
    if (cut) begin
      accept_q <= 1'b0;
      cut_q    <= 1'b1;
    end
    if (!cmac_pwr_rstn) begin
      mid_frame_q      <= 1'b0;
      len_q            <= FcsBytes;
      m_axis_rx_tvalid <= 1'b0;
      wire_o           <= 1'b0;
      disabled_o       <= 1'b0;
    end
  end

  always_ff @(posedge cmac_clk) begin
    if (beat) begin
      m_axis_rx_tdata     <= s_axis_rx_tdata;
      m_axis_rx_tkeep     <= s_axis_rx_tkeep;
      m_axis_rx_tlast     <= s_axis_rx_tlast;
      m_axis_rx_tuser_err <= s_axis_rx_tlast && (s_axis_rx_tuser_err || len < min_len_i || len > max_len_i);
    end
    if (cut) begin
      m_axis_rx_tkeep     <= '1;
      m_axis_rx_tlast     <= 1'b1;
      m_axis_rx_tuser_err <= 1'b1;
    end
  end

  `ONIC_ASSERT(RxKeepLow_A, cmac_clk, cmac_rstn,
               !s_axis_rx_tvalid || (s_axis_rx_tkeep & (s_axis_rx_tkeep + 1'b1)) == '0, "tkeep is not a mask of low bytes")
  `ONIC_ASSERT(RxKeepFull_A, cmac_clk, cmac_rstn, !s_axis_rx_tvalid || s_axis_rx_tlast || &s_axis_rx_tkeep,
               "a beat before the last is not full")
  `ONIC_ASSERT(RxKeepSome_A, cmac_clk, cmac_rstn, !s_axis_rx_tvalid || s_axis_rx_tkeep[0], "a beat without bytes")
endmodule
`default_nettype wire
