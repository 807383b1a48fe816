// Brings single-cycle pulses into another clock domain, one out for each one in.
//
// Needs: pulses at least four cycles of the slower clock apart (asserted: a pulse must not overtake the one before).
// Latency one src_clk edge and two to three dst_clk edges.
`include "onic_assert.svh"
`default_nettype none
module cdc_pulse (
  input  wire  src_clk,
  input  wire  src_rstn,
  input  wire  pulse_i,
  input  wire  dst_clk,
  input  wire  dst_rstn,
  output logic pulse_o
);
  logic toggle_q, toggle_seen, toggle_done_q, returned;

  always_ff @(posedge src_clk) begin
    if (!src_rstn)    toggle_q <= 1'b0;
    else if (pulse_i) toggle_q <= !toggle_q;
  end

  cdc_sync u_there (.dst_clk(dst_clk), .dst_rstn(dst_rstn), .d_i(toggle_q), .q_o(toggle_seen));
  cdc_sync u_back  (.dst_clk(src_clk), .dst_rstn(src_rstn), .d_i(toggle_done_q), .q_o(returned));

  always_ff @(posedge dst_clk) begin
    toggle_done_q <= dst_rstn && toggle_seen;
    pulse_o       <= dst_rstn && toggle_seen != toggle_done_q;
  end

  `ONIC_ASSERT(PulseSpacing_A, src_clk, src_rstn, !(pulse_i && returned != toggle_q),
               "a pulse came before the last one had crossed")
endmodule
`default_nettype wire
