// Stretches the power-up reset, so that every clock domain sees it.
//
// A reset of one cycle would be over in one domain before another has left the state that it woke up in. So powerup_rstn_i
// low for one cycle or more gives rstn_o low from the next cycle until 16 cycles after its end: at least 8 of any clock here.
// rstn_o is a register, fit to cross into other domains by cdc_reset.
`default_nettype none
module powerup_reset (
  input  wire  clk,
  input  wire  powerup_rstn_i,                         // active low
  output logic rstn_o
);
  logic [3:0] left_q;                                  // cycles to go

  always_ff @(posedge clk) begin
    if (!powerup_rstn_i) begin
      left_q <= '1;
      rstn_o <= 1'b0;
    end else begin
      if (left_q != '0) left_q <= left_q - 1'b1;
      rstn_o <= left_q == '0;
    end
  end
endmodule
`default_nettype wire
