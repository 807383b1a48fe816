// Full register slice (skid buffer) of an AXI4-Stream hop: two entries, every output a register, s_axis_tready included.
//
// Latency 1 cycle, 1 beat per cycle, back-pressure honoured. No path from m_axis_tready to s_axis_tready in one cycle.
// The second entry is written only when a beat arrives into a stall, so that an unstalled stream costs one register.
`include "onic_assert.svh"
`default_nettype none
module axis_skid #(
  parameter int unsigned DataWidth = 512,             // bits, a multiple of 8
  parameter int unsigned UserWidth = 1,               // bits
  localparam int unsigned KeepWidth = DataWidth / 8
) (
  input  wire                  axis_aclk,
  input  wire                  axis_aresetn,
  // Beats in
  input  wire                  s_axis_tvalid,
  input  wire  [DataWidth-1:0] s_axis_tdata,
  input  wire  [KeepWidth-1:0] s_axis_tkeep,
  input  wire                  s_axis_tlast,
  input  wire  [UserWidth-1:0] s_axis_tuser,
  output logic                 s_axis_tready,
  // Beats out
  output logic                 m_axis_tvalid,
  output logic [DataWidth-1:0] m_axis_tdata,
  output logic [KeepWidth-1:0] m_axis_tkeep,
  output logic                 m_axis_tlast,
  output logic [UserWidth-1:0] m_axis_tuser,
  input  wire                  m_axis_tready
);
  logic                 skid_valid_q;
  logic [DataWidth-1:0] skid_data_q;
  logic [KeepWidth-1:0] skid_keep_q;
  logic                 skid_last_q;
  logic [UserWidth-1:0] skid_user_q;

  wire take    = s_axis_tvalid && s_axis_tready;
  wire advance = !m_axis_tvalid || m_axis_tready;     // the output register can be loaded

  // s_axis_tready is low exactly when the skid entry is in use (and in reset).
  always_ff @(posedge axis_aclk) begin
    if (!axis_aresetn) begin
      m_axis_tvalid <= 1'b0;
      skid_valid_q  <= 1'b0;
      s_axis_tready <= 1'b0;
    end else begin
      if (advance) m_axis_tvalid <= skid_valid_q || take;
      skid_valid_q  <= !advance && (skid_valid_q || take);
      s_axis_tready <= advance || !(skid_valid_q || take);
    end
  end

  always_ff @(posedge axis_aclk) begin
    if (advance && skid_valid_q) begin
      m_axis_tdata <= skid_data_q;
      m_axis_tkeep <= skid_keep_q;
      m_axis_tlast <= skid_last_q;
      m_axis_tuser <= skid_user_q;
    end else if (advance && take) begin
      m_axis_tdata <= s_axis_tdata;
      m_axis_tkeep <= s_axis_tkeep;
      m_axis_tlast <= s_axis_tlast;
      m_axis_tuser <= s_axis_tuser;
    end
    if (take && !advance) begin
      skid_data_q <= s_axis_tdata;
      skid_keep_q <= s_axis_tkeep;
      skid_last_q <= s_axis_tlast;
      skid_user_q <= s_axis_tuser;
    end
  end

  `ONIC_ASSERT(SkidNoLoss_A, axis_aclk, axis_aresetn, !(take && skid_valid_q), "a beat came while both entries were full")
  `ONIC_ASSERT_STABLE(AxisStable_A, axis_aclk, axis_aresetn, s_axis_tvalid, s_axis_tready, s_axis_tdata, DataWidth,
                      "a beat changed while it was stalled")
endmodule
`default_nettype wire
