// Turns the block's reset into the reset of one stream path, so that it cuts no frame that has begun to leave.
//
// From the reset on, stop_o tells the path to offer nothing new. What it has begun (open_i) it finishes first; then
// rstn_o falls, for as long as the block's reset lasts and for one cycle at least, and forgets what waits behind. If the
// receiver takes its time the path's reset may so come after the block's: stop_o stays until then. Power-up waits for
// nothing.
`default_nettype none
module qdma_stream_reset (
  input  wire  axis_aclk,
  input  wire  axis_pwr_rstn,   // power-up; synchronous to axis_aclk, active low
  input  wire  axis_aresetn,    // the block's reset, likewise
  input  wire  open_i,          // something offered or half sent; from registers that rstn_o or axis_pwr_rstn clears
  output logic stop_o,          // offer nothing new
  output logic rstn_o           // the path's reset, synchronous
);
  logic pending_q;              // the block was reset, the path is not yet

  assign stop_o = !axis_aresetn || pending_q;
  assign rstn_o = axis_pwr_rstn && !(stop_o && !open_i);

  always_ff @(posedge axis_aclk) pending_q <= axis_pwr_rstn && stop_o && open_i;
endmodule
`default_nettype wire
