// Brings one level into another clock domain: two flops, no more.
//
// Needs: d_i comes from a register, and holds each value for at least two dst_clk cycles if the change must be seen.
// Latency two to three dst_clk edges. Several bits that must be seen together do not belong here: use a handshake, a
// gray code, or one cdc_sync for a qualifying bit.
`default_nettype none
module cdc_sync #(
  parameter bit ResetValue = 1'b0
) (
  input  wire  dst_clk,
  input  wire  dst_rstn,   // synchronous, active low
  input  wire  d_i,        // from a register of the other domain
  output logic q_o
);
  logic meta_q;

  always_ff @(posedge dst_clk) begin
    if (!dst_rstn) begin
      meta_q <= ResetValue;
      q_o    <= ResetValue;
    end else begin
      meta_q <= d_i;
      q_o    <= meta_q;
    end
  end
endmodule
`default_nettype wire
