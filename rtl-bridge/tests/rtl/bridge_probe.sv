// Everything that the bridge must be able to cross, in one small top; used by rtl-bridge/tests only.
//
// An AXI-Stream register (stream_clk), an AXI-Lite register with a bus error (lite_clk), loop-backs of every storage
// class that Verilator has for a port, an unreset register that shows the random initial state, and provocations:
// each bit of `provoke` ends the run in another way. All outputs are registered.
`default_nettype none

module bridge_probe (
  input  wire          stream_clk,
  input  wire          stream_rstn,                   // synchronous, active low
  input  wire          lite_clk,
  input  wire          lite_rstn,                     // synchronous, active low

  // Frames in
  input  wire          s_axis_tvalid,
  output logic         s_axis_tready,
  input  wire  [511:0] s_axis_tdata,
  input  wire   [63:0] s_axis_tkeep,
  input  wire          s_axis_tlast,
  // Frames out, unchanged
  output logic         m_axis_tvalid,
  input  wire          m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic  [63:0] m_axis_tkeep,
  output logic         m_axis_tlast,

  // Streams that a test makes up, right or wrong, for a reader of its own; nothing reads them here. One with tkeep and
  // one with mty, as the shell has them
  input  wire          keep_axis_tvalid,
  input  wire          keep_axis_tready,
  input  wire  [511:0] keep_axis_tdata,
  input  wire   [63:0] keep_axis_tkeep,
  input  wire          keep_axis_tlast,
  input  wire          mty_axis_tvalid,
  input  wire          mty_axis_tready,
  input  wire  [511:0] mty_axis_tdata,
  input  wire    [5:0] mty_axis_tuser_mty,
  input  wire          mty_axis_tuser_err,
  input  wire          mty_axis_tlast,

  // One 32-bit register at 0x0; 0x4 counts the stream's beats; 0x8 never answers; all else DECERR
  input  wire          s_axil_awvalid,
  input  wire   [31:0] s_axil_awaddr,
  output logic         s_axil_awready,
  input  wire          s_axil_wvalid,
  input  wire   [31:0] s_axil_wdata,
  output logic         s_axil_wready,
  output logic         s_axil_bvalid,
  output logic   [1:0] s_axil_bresp,
  input  wire          s_axil_bready,
  input  wire          s_axil_arvalid,
  input  wire   [31:0] s_axil_araddr,
  output logic         s_axil_arready,
  output logic         s_axil_rvalid,
  output logic  [31:0] s_axil_rdata,
  output logic   [1:0] s_axil_rresp,
  input  wire          s_axil_rready,

  // Loop-backs, one stream_clk later
  input  wire          loop1_i,
  output logic         loop1_o,
  input  wire   [10:0] loop11_i,
  output logic  [10:0] loop11_o,
  input  wire   [31:0] loop32_i,
  output logic  [31:0] loop32_o,
  input  wire   [63:0] loop64_i,
  output logic  [63:0] loop64_o,
  input  wire   [64:0] loop65_i,
  output logic  [64:0] loop65_o,
  input  wire  [319:0] loop320_i,
  output logic [319:0] loop320_o,
  input  wire  [511:0] loop512_i,
  output logic [511:0] loop512_o,
  // Combinational, to show the settle mode
  output logic  [31:0] inverted_o,

  // Bits: 0 failing assertion, 1 $fatal, 2 $finish, 3 $stop, 4 $display, 5 $warning, 6 endless combinational change
  input  wire    [6:0] provoke,
  output logic  [31:0] unreset_o,                     // no reset: what the run's seed made of it
  output logic  [31:0] beats_o                        // beats taken
);

  // ---- Stream: a two-entry buffer, so that tready is registered and still every cycle can carry a beat ----
  typedef struct packed {
    logic [511:0] tdata;
    logic  [63:0] tkeep;
    logic         tlast;
  } beat_t;

  beat_t spare_q;
  logic  spare_valid_q;
  beat_t s_beat;
  logic  s_take, m_free;

  assign s_beat = {s_axis_tdata, s_axis_tkeep, s_axis_tlast};
  assign s_take = s_axis_tvalid && s_axis_tready;
  assign m_free = m_axis_tready || !m_axis_tvalid;

  always_ff @(posedge stream_clk) begin
    if (m_free) begin
      m_axis_tvalid <= spare_valid_q || s_take;
      {m_axis_tdata, m_axis_tkeep, m_axis_tlast} <= spare_valid_q ? spare_q : s_beat;
      spare_valid_q <= 1'b0;
      s_axis_tready <= 1'b1;
    end else if (s_take) begin
      spare_q       <= s_beat;
      spare_valid_q <= 1'b1;
      s_axis_tready <= 1'b0;
    end
    if (s_take) beats_o <= beats_o + 32'd1;
    if (!stream_rstn) begin
      m_axis_tvalid <= 1'b0;
      spare_valid_q <= 1'b0;
      s_axis_tready <= 1'b0;
      beats_o       <= '0;
    end
  end

  StreamBeat_C: cover property (@(posedge stream_clk) s_take);

  wire unused_made_up = ^{keep_axis_tvalid, keep_axis_tready, keep_axis_tdata, keep_axis_tkeep, keep_axis_tlast,
                          mty_axis_tvalid, mty_axis_tready, mty_axis_tdata, mty_axis_tuser_mty, mty_axis_tuser_err,
                          mty_axis_tlast};

  // ---- Loop-backs ----
  always_ff @(posedge stream_clk) begin
    loop1_o   <= loop1_i;
    loop11_o  <= loop11_i;
    loop32_o  <= loop32_i;
    loop64_o  <= loop64_i;
    loop65_o  <= loop65_i;
    loop320_o <= loop320_i;
    loop512_o <= loop512_i;
  end

  assign inverted_o = ~loop32_i;

  logic [31:0] unreset_q;
  always_ff @(posedge stream_clk) unreset_o <= unreset_q;
  always_ff @(posedge stream_clk) if (loop1_i) unreset_q <= unreset_q + 32'd1;

  // ---- AXI-Lite ----
  logic [31:0] scratch_q;
  logic [31:0] awaddr_q, wdata_q;
  logic        aw_q, w_q;

  always_ff @(posedge lite_clk) begin
    s_axil_awready <= !aw_q && !s_axil_awready;
    s_axil_wready  <= !w_q && !s_axil_wready;
    if (s_axil_awvalid && s_axil_awready) begin aw_q <= 1'b1; awaddr_q <= s_axil_awaddr; s_axil_awready <= 1'b0; end
    if (s_axil_wvalid && s_axil_wready)   begin w_q  <= 1'b1; wdata_q  <= s_axil_wdata;  s_axil_wready  <= 1'b0; end
    if (aw_q && w_q && !s_axil_bvalid && awaddr_q != 32'h8) begin
      s_axil_bvalid <= 1'b1;
      s_axil_bresp  <= awaddr_q > 32'h4 ? 2'd3 : 2'd0;
      if (awaddr_q == 32'h0) scratch_q <= wdata_q;
    end
    if (s_axil_bvalid && s_axil_bready) begin s_axil_bvalid <= 1'b0; aw_q <= 1'b0; w_q <= 1'b0; end

    s_axil_arready <= !s_axil_arready && !s_axil_rvalid;
    if (s_axil_arvalid && s_axil_arready && s_axil_araddr != 32'h8) begin
      s_axil_rvalid <= 1'b1;
      s_axil_rresp  <= s_axil_araddr > 32'h4 ? 2'd3 : 2'd0;
      s_axil_rdata  <= s_axil_araddr == 32'h0 ? scratch_q : 32'(beats_o);
    end
    if (s_axil_rvalid && s_axil_rready) s_axil_rvalid <= 1'b0;

    if (!lite_rstn) begin
      {s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_arready, s_axil_rvalid} <= '0;
      {aw_q, w_q} <= '0;
      scratch_q   <= '0;
    end
  end

  // ---- Provocations ----
  bridge_probe_inner inner (.clk(stream_clk), .provoke);

  // Not Verilator's to find: two inverters in a ring that only bit 6 closes.
  logic ring_a, ring_b;
  /* verilator lint_off UNOPTFLAT */
  always_comb ring_a = provoke[6] ? !ring_b : 1'b0;
  always_comb ring_b = provoke[6] ? ring_a : 1'b0;
  /* verilator lint_on UNOPTFLAT */

endmodule

// One level down, so that an instance path has something to say.
module bridge_probe_inner (
  input wire       clk,
  input wire [6:0] provoke
);
  initial begin
    automatic int unsigned preset;
    if ($value$plusargs("probe_say=%d", preset)) $display("probe says %0d", preset);
  end

  always_ff @(posedge clk) begin
    NeverProvoked_A: assert (!provoke[0]) else $error("provoke=0x%0h", provoke);
    if (provoke[1]) $fatal(1, "asked to die with provoke=0x%0h", provoke);
    if (provoke[2]) $finish;
    if (provoke[3]) $stop;
    if (provoke[4]) $display("hello from %m");
    if (provoke[5]) $warning("take care");
  end
endmodule
`default_nettype wire
