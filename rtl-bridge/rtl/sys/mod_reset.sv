// Reset generator of one module: a request holds the module's reset for 101 axil cycles.
//
// A request in cycle T makes mod_rst_done_o and rstn_o fall in T+1 and rise together in T+102, as upstream's
// generic_reset does. Unlike there, no request is lost: one that comes during a reset starts the 101 cycles again
// (upstream quirk Q11). While axil_aresetn is low the request stands.
//
// rstn_o is a register of axil_aclk; cdc_reset takes it to the module's other clocks.
// Source: shell.md section 5.1.
`default_nettype none
module mod_reset #(
  parameter int unsigned HoldCycles = 101             // axil cycles
) (
  input  wire  axil_aclk,
  input  wire  axil_aresetn,
  input  wire  mod_rstn_i,                            // request: low for one cycle or more
  output logic rstn_o,
  output logic mod_rst_done_o
);
  localparam int unsigned CountWidth = $clog2(HoldCycles + 1);
  logic [CountWidth-1:0] left_q;                      // cycles of reset still to come

  always_ff @(posedge axil_aclk) begin
    if (!axil_aresetn || !mod_rstn_i) begin
      left_q         <= CountWidth'(HoldCycles);
      rstn_o         <= 1'b0;
      mod_rst_done_o <= 1'b0;
    end else if (left_q > 1) begin
      left_q         <= left_q - 1'b1;
    end else begin
      left_q         <= '0;
      rstn_o         <= 1'b1;
      mod_rst_done_o <= 1'b1;
    end
  end
endmodule
`default_nettype wire
