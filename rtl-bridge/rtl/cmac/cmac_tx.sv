// Transmit side of the MAC of one port: holds frames back while it is off, and registers what leaves.
//
// tready is low while the transmitter is off, at frame boundaries only: a frame that has begun is finished. No padding, no
// FCS, no length limit: short frames leave as they are (and are counted as small). One beat per cycle, latency 1 cycle.
//
// A MAC reset that cuts a frame leaves its head on the wire: after the reset the end is made up, one beat with tlast and
// tuser_err, and what was still to come of it is thrown away. tuser_err passes otherwise.
`include "onic_assert.svh"
`default_nettype none
module cmac_tx (
  input  wire          cmac_clk,
  input  wire          cmac_rstn,
  input  wire          cmac_pwr_rstn,                 // power-up reset: no frame is open
  input  wire          enable_i,
  // Frames in
  input  wire          s_axis_tx_tvalid,
  input  wire  [511:0] s_axis_tx_tdata,
  input  wire   [63:0] s_axis_tx_tkeep,
  input  wire          s_axis_tx_tlast,
  input  wire          s_axis_tx_tuser_err,
  output logic         s_axis_tx_tready,
  // Frames out
  output logic         m_axis_tx_tvalid,
  output logic [511:0] m_axis_tx_tdata,
  output logic  [63:0] m_axis_tx_tkeep,
  output logic         m_axis_tx_tlast,
  output logic         m_axis_tx_tuser_err,
  input  wire          m_axis_tx_tready,
  output logic         wire_o,                        // a frame left
  // For the statistics, aligned with the beats in
  output logic         stat_beat_o,
  output logic         stat_first_o,
  output logic  [15:0] stat_len_o                     // with the last beat: bytes with FCS
);
  localparam logic [15:0] FcsBytes = 16'd4;

  logic        in_open_q;                             // a beat of a frame has come in, its last has not
  logic        out_open_q;                            // a beat of a frame has been loaded into the output, its last has not
  logic        skip_q;                                // the rest of the open frame is thrown away
  logic        cut_q;                                 // an end has to be made up
  logic [15:0] len_q;                                 // bytes of the beats so far, with FCS

  wire free = !m_axis_tx_tvalid || m_axis_tx_tready;  // the output register can be loaded
  wire skip = in_open_q && skip_q;
  wire load = s_axis_tx_tvalid && s_axis_tx_tready && !skip;

  assign s_axis_tx_tready = cmac_rstn && !cut_q && (skip || (free && (enable_i || in_open_q)));

  wire [15:0] len = len_q + 16'($countones(s_axis_tx_tkeep));
  assign stat_beat_o  = load;
  assign stat_first_o = !in_open_q;
  assign stat_len_o   = len;

  always_ff @(posedge cmac_clk) begin
    wire_o <= m_axis_tx_tvalid && m_axis_tx_tready && m_axis_tx_tlast;
    if (free) m_axis_tx_tvalid <= load || (cut_q && cmac_rstn);
    if (s_axis_tx_tvalid && s_axis_tx_tready) begin
      in_open_q <= !s_axis_tx_tlast;
      skip_q    <= skip && !s_axis_tx_tlast;
      len_q     <= s_axis_tx_tlast ? FcsBytes : len_q + 16'd64;
    end
    if (load) out_open_q <= !s_axis_tx_tlast;
    if (free && cut_q && cmac_rstn) begin
      cut_q      <= 1'b0;
      out_open_q <= 1'b0;
    end
    if (!cmac_rstn && out_open_q) cut_q <= 1'b1;
    if (!cmac_rstn) skip_q <= 1'b1;
    if (!cmac_pwr_rstn) begin
      in_open_q        <= 1'b0;
      out_open_q       <= 1'b0;
      skip_q           <= 1'b0;
      cut_q            <= 1'b0;
      len_q            <= FcsBytes;
      m_axis_tx_tvalid <= 1'b0;
    end
  end

  always_ff @(posedge cmac_clk) begin
    if (load) begin
      m_axis_tx_tdata     <= s_axis_tx_tdata;
      m_axis_tx_tkeep     <= s_axis_tx_tkeep;
      m_axis_tx_tlast     <= s_axis_tx_tlast;
      m_axis_tx_tuser_err <= s_axis_tx_tuser_err;
    end else if (free && cut_q) begin
      m_axis_tx_tkeep     <= '1;
      m_axis_tx_tlast     <= 1'b1;
      m_axis_tx_tuser_err <= 1'b1;
    end
  end

  // By contract a 322 MHz stream has no gap inside a frame.
  `ONIC_ASSERT(TxNoGap_A, cmac_clk, cmac_rstn, !in_open_q || skip || cut_q || s_axis_tx_tvalid, "a gap inside a frame to the MAC")
  // An adapter's reset may take back a frame's first beat, but nothing later.
  `ONIC_ASSERT_STABLE(TxStable_A, cmac_clk, cmac_pwr_rstn, s_axis_tx_tvalid && in_open_q, s_axis_tx_tready,
                      {s_axis_tx_tlast, s_axis_tx_tkeep}, 65, "a beat changed while it was stalled")
endmodule
`default_nettype wire
