// Forward register slice of an AXI4-Stream hop: one entry, registered outputs.
//
// Latency 1 cycle, 1 beat per cycle, back-pressure honoured. s_axis_tready depends on m_axis_tready in the same cycle;
// where that path must end, use axis_skid.
`include "onic_assert.svh"
`default_nettype none
module axis_slice_fwd #(
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
  assign s_axis_tready = !m_axis_tvalid || m_axis_tready;

  always_ff @(posedge axis_aclk) begin
    if (!axis_aresetn) m_axis_tvalid <= 1'b0;
    else if (s_axis_tready) m_axis_tvalid <= s_axis_tvalid;
  end

  always_ff @(posedge axis_aclk) begin
    if (s_axis_tvalid && s_axis_tready) begin
      m_axis_tdata <= s_axis_tdata;
      m_axis_tkeep <= s_axis_tkeep;
      m_axis_tlast <= s_axis_tlast;
      m_axis_tuser <= s_axis_tuser;
    end
  end

  `ONIC_ASSERT_STABLE(AxisStable_A, axis_aclk, axis_aresetn, s_axis_tvalid, s_axis_tready, s_axis_tdata, DataWidth,
                      "a beat changed while it was stalled")
endmodule
`default_nettype wire
