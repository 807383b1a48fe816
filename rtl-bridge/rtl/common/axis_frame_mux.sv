// Merges N streams into one, frame by frame, round robin. With N = 1 it is wires.
//
// A stream that has begun a frame keeps the output until its last beat. No register in the path: tvalid and the payload
// pass in the same cycle, tready of the chosen stream is m_axis_tready. The choice never depends on m_axis_tready, and
// never changes while a beat waits.
`include "onic_assert.svh"
`default_nettype none
module axis_frame_mux #(
  parameter  int unsigned N         = 1,              // streams
  parameter  int unsigned UserWidth = 48              // bits of tuser
) (
  input  wire                  axis_aclk,
  input  wire                  axis_aresetn,
  input  wire          [N-1:0] s_axis_tvalid,
  input  wire      [512*N-1:0] s_axis_tdata,
  input  wire       [64*N-1:0] s_axis_tkeep,
  input  wire          [N-1:0] s_axis_tlast,
  input  wire [UserWidth*N-1:0] s_axis_tuser,
  output logic         [N-1:0] s_axis_tready,
  output logic                 m_axis_tvalid,
  output logic         [511:0] m_axis_tdata,
  output logic          [63:0] m_axis_tkeep,
  output logic                 m_axis_tlast,
  output logic [UserWidth-1:0] m_axis_tuser,
  input  wire                  m_axis_tready
);
  if (N == 1) begin : gen_wires
    assign s_axis_tready = m_axis_tready;
    assign m_axis_tvalid = s_axis_tvalid;
    assign m_axis_tdata  = s_axis_tdata;
    assign m_axis_tkeep  = s_axis_tkeep;
    assign m_axis_tlast  = s_axis_tlast;
    assign m_axis_tuser  = s_axis_tuser;
    wire unused_clock = ^{axis_aclk, axis_aresetn};
  end else begin : gen_mux
    localparam int unsigned SelWidth = $clog2(N);
    logic                held_q;                      // the choice stands: inside a frame, or its first beat waits
    logic [SelWidth-1:0] sel_q, next, sel;

    // The next stream with a beat, starting after the last one chosen.
    always_comb begin
      next = sel_q;
      for (int unsigned k = N; k >= 1; k--) begin
        if (s_axis_tvalid[SelWidth'((32'(sel_q) + k) % N)]) next = SelWidth'((32'(sel_q) + k) % N);
      end
    end
    assign sel = held_q ? sel_q : next;

    always_comb begin
      s_axis_tready      = '0;
      s_axis_tready[sel] = m_axis_tready && s_axis_tvalid[sel];
    end
    assign m_axis_tvalid = s_axis_tvalid[sel];
    assign m_axis_tdata  = s_axis_tdata[512*sel +: 512];
    assign m_axis_tkeep  = s_axis_tkeep[64*sel +: 64];
    assign m_axis_tlast  = s_axis_tlast[sel];
    assign m_axis_tuser  = s_axis_tuser[UserWidth*sel +: UserWidth];

    always_ff @(posedge axis_aclk) begin
      if (!axis_aresetn) begin
        held_q <= 1'b0;
        sel_q  <= '0;
      end else if (m_axis_tvalid) begin
        held_q <= !(m_axis_tready && m_axis_tlast);
        sel_q  <= sel;
      end
    end

    `ONIC_ASSERT(AxisMuxHeld_A, axis_aclk, axis_aresetn, $onehot0(s_axis_tready), "two streams are taken at once")
  end
endmodule
`default_nettype wire
