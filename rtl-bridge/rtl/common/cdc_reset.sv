// Brings an active-low reset level into another clock domain.
//
// Both edges are synchronous to dst_clk, because every block of the shell resets synchronously. Needs: the source holds
// the reset for at least four dst_clk cycles (the reset generator holds it for 101 axil cycles). rstn_o falls and rises
// two to three edges after rstn_i.
`default_nettype none
module cdc_reset (
  input  wire  dst_clk,
  input  wire  rstn_i,     // from a register of the other domain
  output logic rstn_o
);
  logic meta_q;

  always_ff @(posedge dst_clk) begin
    meta_q <= rstn_i;
    rstn_o <= meta_q;
  end
endmodule
`default_nettype wire
