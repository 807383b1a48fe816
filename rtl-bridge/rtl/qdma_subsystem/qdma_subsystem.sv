// The QDMA side of the shell: what lies between the QDMA's streams and box 250, once for all functions.
//
//   H2C: QDMA -> registered slice -> range match -> box 250, stream f for function f
//   C2H: box 250, stream f -> function f (hash, table, queue id) -> arbiter -> QDMA data, then QDMA completion
//
// All of it runs on axis_aclk; only the register bus is on axil_aclk. Each hop moves one beat per cycle, honours
// back-pressure, and registers its outputs: no combinational path leads from an input port to an output port. Frames
// are never split or merged, and keep their order within a function.
//
// Registers (BAR2 0x1000 to 0x5FFF, addresses here relative to 0x1000): function f at 0x1000*f, common page at 0x4000.
// An absent function's page, and 0x5000 and above, answer DECERR (reads 0xDEADBEEF); everything else answers OKAY,
// also while axis_aresetn is low.
//
// axis_aresetn reloads the registers at once. The stream paths first finish a frame that the QDMA or box 250 has begun to
// take, with its completion; then they forget what waits. So no neighbour, who is not reset, ever sees half a frame.
//
// Lost frames, each counted in the common page and reported by a monitor: no function owns the queue of an H2C frame;
// the table's entry of a C2H frame is not below the function's number of queues.
//
// Of its neighbours it needs: tuser_size right on the first and on the last beat of each C2H frame (upstream's rule
// is "on every beat", which implies it).
//
// Source: open-nic-shell src/qdma_subsystem at 940907f, as described in shell.md sections 4, 6, 7.2 and 9 to 11; the
// differences from it are the rows Q3, Q6, Q9, Q16, Q18, Q19 and Q20 of docs/quirks.md.
`default_nettype none
module qdma_subsystem #(
  parameter int unsigned USE_PHYS_FUNC = 1,            // 0: no data path; registers echo 0x0D0A and the address
  parameter int unsigned NUM_PHYS_FUNC = 1             // PCIe functions, 1 to 4
) (
  // Register bus
  input  wire                         axil_aclk,
  input  wire                         axil_aresetn,    // the bus's reset (power-up), not the block's
  input  wire                         s_axil_awvalid,
  input  wire                  [31:0] s_axil_awaddr,   // relative to BAR2 0x1000
  output logic                        s_axil_awready,
  input  wire                         s_axil_wvalid,
  input  wire                  [31:0] s_axil_wdata,
  output logic                        s_axil_wready,
  output logic                        s_axil_bvalid,
  output logic                  [1:0] s_axil_bresp,
  input  wire                         s_axil_bready,
  input  wire                         s_axil_arvalid,
  input  wire                  [31:0] s_axil_araddr,
  output logic                        s_axil_arready,
  output logic                        s_axil_rvalid,
  output logic                 [31:0] s_axil_rdata,
  output logic                  [1:0] s_axil_rresp,
  input  wire                         s_axil_rready,

  // Streams: clock, power-up reset, and the block's reset (both synchronous to axis_aclk, active low)
  input  wire                         axis_aclk,
  input  wire                         axis_pwr_rstn,
  input  wire                         axis_aresetn,

  // H2C frames from the QDMA (shell.md section 4.2; what upstream ignores has no port here, except at the top)
  input  wire                         s_axis_qdma_h2c_tvalid,
  input  wire                         s_axis_qdma_h2c_tlast,
  input  wire                 [511:0] s_axis_qdma_h2c_tdata,
  input  wire                  [10:0] s_axis_qdma_h2c_tuser_qid,
  input  wire                  [31:0] s_axis_qdma_h2c_tuser_mdata,
  output logic                        s_axis_qdma_h2c_tready,

  // C2H frames to the QDMA (section 4.3)
  output logic                        m_axis_qdma_c2h_tvalid,
  output logic                        m_axis_qdma_c2h_tlast,
  output logic                [511:0] m_axis_qdma_c2h_tdata,
  output logic                 [31:0] m_axis_qdma_c2h_tcrc,
  output logic                        m_axis_qdma_c2h_ctrl_marker,
  output logic                  [2:0] m_axis_qdma_c2h_ctrl_port_id,
  output logic                  [6:0] m_axis_qdma_c2h_ctrl_ecc,
  output logic                 [15:0] m_axis_qdma_c2h_ctrl_len,
  output logic                 [10:0] m_axis_qdma_c2h_ctrl_qid,
  output logic                        m_axis_qdma_c2h_ctrl_has_cmpt,
  output logic                  [5:0] m_axis_qdma_c2h_mty,
  input  wire                         m_axis_qdma_c2h_tready,

  // C2H completions to the QDMA (section 4.4)
  output logic                        m_axis_qdma_cpl_tvalid,
  output logic                [511:0] m_axis_qdma_cpl_tdata,
  output logic                  [1:0] m_axis_qdma_cpl_size,
  output logic                 [15:0] m_axis_qdma_cpl_dpar,
  output logic                 [10:0] m_axis_qdma_cpl_ctrl_qid,
  output logic                  [1:0] m_axis_qdma_cpl_ctrl_cmpt_type,
  output logic                 [15:0] m_axis_qdma_cpl_ctrl_wait_pld_pkt_id,
  output logic                  [2:0] m_axis_qdma_cpl_ctrl_port_id,
  output logic                        m_axis_qdma_cpl_ctrl_marker,
  output logic                        m_axis_qdma_cpl_ctrl_user_trig,
  output logic                  [2:0] m_axis_qdma_cpl_ctrl_col_idx,
  output logic                  [2:0] m_axis_qdma_cpl_ctrl_err_idx,
  output logic                        m_axis_qdma_cpl_ctrl_no_wrb_marker,
  input  wire                         m_axis_qdma_cpl_tready,

  // H2C frames to box 250, one stream for each function
  output logic    [NUM_PHYS_FUNC-1:0] m_axis_h2c_tvalid,
  output logic [NUM_PHYS_FUNC*512-1:0] m_axis_h2c_tdata,
  output logic [NUM_PHYS_FUNC*64-1:0] m_axis_h2c_tkeep,
  output logic    [NUM_PHYS_FUNC-1:0] m_axis_h2c_tlast,
  output logic [NUM_PHYS_FUNC*16-1:0] m_axis_h2c_tuser_size,
  output logic [NUM_PHYS_FUNC*16-1:0] m_axis_h2c_tuser_src,
  output logic [NUM_PHYS_FUNC*16-1:0] m_axis_h2c_tuser_dst,
  input  wire     [NUM_PHYS_FUNC-1:0] m_axis_h2c_tready,

  // C2H frames from box 250, one stream for each function. tkeep, src and dst are not looked at (section 11.1)
  input  wire     [NUM_PHYS_FUNC-1:0] s_axis_c2h_tvalid,
  input  wire [NUM_PHYS_FUNC*512-1:0] s_axis_c2h_tdata,
  input  wire     [NUM_PHYS_FUNC-1:0] s_axis_c2h_tlast,
  input  wire  [NUM_PHYS_FUNC*16-1:0] s_axis_c2h_tuser_size,
  output logic    [NUM_PHYS_FUNC-1:0] s_axis_c2h_tready,

  // Monitors on axis_aclk. rss: one pulse for each C2H frame of a function, in order
  output logic    [NUM_PHYS_FUNC-1:0] mon_rss_valid,
  output logic [NUM_PHYS_FUNC*32-1:0] mon_rss_hash,
  output logic [NUM_PHYS_FUNC*16-1:0] mon_rss_entry,   // the indirection table's entry
  output logic    [NUM_PHYS_FUNC-1:0] mon_rss_drop,    // 1: entry outside the function's queues, frame dropped
  // One pulse for each H2C frame dropped because no function owns its queue
  output logic                        mon_h2c_drop_valid
);
  if (NUM_PHYS_FUNC < 1 || NUM_PHYS_FUNC > 4) begin : gen_bad_num_phys_func
    $error("%m: NUM_PHYS_FUNC must be 1 to 4");
  end

  // ---- What never changes ----
  assign m_axis_qdma_c2h_ctrl_marker        = 1'b0;
  assign m_axis_qdma_c2h_ctrl_port_id       = '0;
  assign m_axis_qdma_c2h_ctrl_ecc           = '0;
  assign m_axis_qdma_c2h_ctrl_has_cmpt      = 1'b1;
  assign m_axis_qdma_cpl_size               = 2'd0;             // 8 bytes
  assign m_axis_qdma_cpl_ctrl_cmpt_type     = 2'd3;             // has payload
  assign m_axis_qdma_cpl_ctrl_port_id       = '0;
  assign m_axis_qdma_cpl_ctrl_marker        = 1'b0;
  assign m_axis_qdma_cpl_ctrl_user_trig     = 1'b0;
  assign m_axis_qdma_cpl_ctrl_col_idx       = '0;
  assign m_axis_qdma_cpl_ctrl_err_idx       = '0;
  assign m_axis_qdma_cpl_ctrl_no_wrb_marker = 1'b0;

  // Metadata's upper half is not looked at (section 4.2).
  wire unused_mdata = ^s_axis_qdma_h2c_tuser_mdata[31:16];

  if (USE_PHYS_FUNC != 0) begin : gen_path
    // ---- Register bus: window 0 holds the functions' pages, window 1 the common page ----
    localparam logic [31:0] CommonPage = onic_regs_pkg::SHELL_QDMA_COMMON_BASE - onic_regs_pkg::SHELL_QDMA_FUNCTION_BASE;
    localparam logic [31:0] PageSize   = onic_regs_pkg::SHELL_QDMA_FUNCTION_BYTES;

    logic [1:0]       awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
    logic [1:0][31:0] awaddr, wdata, araddr, rdata;
    logic [1:0] [1:0] bresp, rresp;

    axil_xbar #(
      .NumSlaves(2),
      .Base({CommonPage, 32'd0}),
      .Size({PageSize, PageSize * NUM_PHYS_FUNC})
    ) u_xbar (
      .axil_aclk, .axil_aresetn,
      .s_axil_awvalid, .s_axil_awaddr, .s_axil_awready, .s_axil_wvalid, .s_axil_wdata, .s_axil_wready,
      .s_axil_bvalid, .s_axil_bresp, .s_axil_bready,
      .s_axil_arvalid, .s_axil_araddr, .s_axil_arready, .s_axil_rvalid, .s_axil_rdata, .s_axil_rresp, .s_axil_rready,
      .m_axil_awvalid(awvalid), .m_axil_awaddr(awaddr), .m_axil_awready(awready),
      .m_axil_wvalid(wvalid), .m_axil_wdata(wdata), .m_axil_wready(wready),
      .m_axil_bvalid(bvalid), .m_axil_bresp(bresp), .m_axil_bready(bready),
      .m_axil_arvalid(arvalid), .m_axil_araddr(araddr), .m_axil_arready(arready),
      .m_axil_rvalid(rvalid), .m_axil_rdata(rdata), .m_axil_rresp(rresp), .m_axil_rready(rready)
    );

    logic        func_wr, func_rd, common_rd, unused_common_wr;
    logic [13:0] func_addr;                                     // 13:12 is the function
    logic [11:0] common_addr;
    logic [31:0] func_wdata, func_rdata, common_rdata, unused_common_wdata;

    axil_regs #(.AddrWidth(14)) u_func_regs (
      .axil_aclk, .axil_aresetn,
      .s_axil_awvalid(awvalid[0]), .s_axil_awaddr(awaddr[0]), .s_axil_awready(awready[0]),
      .s_axil_wvalid(wvalid[0]), .s_axil_wdata(wdata[0]), .s_axil_wready(wready[0]),
      .s_axil_bvalid(bvalid[0]), .s_axil_bresp(bresp[0]), .s_axil_bready(bready[0]),
      .s_axil_arvalid(arvalid[0]), .s_axil_araddr(araddr[0]), .s_axil_arready(arready[0]),
      .s_axil_rvalid(rvalid[0]), .s_axil_rdata(rdata[0]), .s_axil_rresp(rresp[0]), .s_axil_rready(rready[0]),
      .reg_clk(axis_aclk), .reg_rstn(axis_aresetn),
      .reg_wr(func_wr), .reg_rd(func_rd), .reg_addr(func_addr), .reg_wdata(func_wdata), .reg_rdata(func_rdata)
    );

    axil_regs #(.AddrWidth(12)) u_common_bus (
      .axil_aclk, .axil_aresetn,
      .s_axil_awvalid(awvalid[1]), .s_axil_awaddr(awaddr[1]), .s_axil_awready(awready[1]),
      .s_axil_wvalid(wvalid[1]), .s_axil_wdata(wdata[1]), .s_axil_wready(wready[1]),
      .s_axil_bvalid(bvalid[1]), .s_axil_bresp(bresp[1]), .s_axil_bready(bready[1]),
      .s_axil_arvalid(arvalid[1]), .s_axil_araddr(araddr[1]), .s_axil_arready(arready[1]),
      .s_axil_rvalid(rvalid[1]), .s_axil_rdata(rdata[1]), .s_axil_rresp(rresp[1]), .s_axil_rready(rready[1]),
      .reg_clk(axis_aclk), .reg_rstn(axis_aresetn),
      .reg_wr(unused_common_wr), .reg_rd(common_rd), .reg_addr(common_addr), .reg_wdata(unused_common_wdata),
      .reg_rdata(common_rdata)
    );

    // ---- Functions ----
    logic c2h_stop, c2h_rstn, c2h_open;
    qdma_stream_reset u_c2h_reset (
      .axis_aclk, .axis_pwr_rstn, .axis_aresetn, .open_i(c2h_open), .stop_o(c2h_stop), .rstn_o(c2h_rstn)
    );

    logic         [15:0] q_base   [NUM_PHYS_FUNC];
    logic         [15:0] num_q    [NUM_PHYS_FUNC];
    logic         [31:0] rdata_of [4];
    logic        [511:0] c2h_data [NUM_PHYS_FUNC];
    logic         [10:0] c2h_qid  [NUM_PHYS_FUNC];
    logic         [15:0] c2h_len  [NUM_PHYS_FUNC];
    logic [NUM_PHYS_FUNC-1:0] c2h_valid, c2h_last, c2h_ready;
    logic [NUM_PHYS_FUNC-1:0] c2h_in, c2h_drop, c2h_out, h2c_in;
    logic                     h2c_drop;

    assign func_rdata = rdata_of[func_addr[13:12]];

    for (genvar f = 0; f < 4; f++) begin : gen_func
      if (f < NUM_PHYS_FUNC) begin : gen_present
        qdma_function u_function (
          .axis_aclk, .axis_pwr_rstn, .axis_aresetn, .stream_rstn(c2h_rstn),
          .reg_wr_i(func_wr && func_addr[13:12] == 2'(f)), .reg_rd_i(func_rd && func_addr[13:12] == 2'(f)),
          .reg_addr_i(func_addr[11:0]), .reg_wdata_i(func_wdata), .reg_rdata_o(rdata_of[f]),
          .q_base_o(q_base[f]), .num_q_o(num_q[f]),
          .s_axis_tvalid(s_axis_c2h_tvalid[f]), .s_axis_tdata(s_axis_c2h_tdata[512*f +: 512]),
          .s_axis_tlast(s_axis_c2h_tlast[f]), .s_axis_tuser_size(s_axis_c2h_tuser_size[16*f +: 16]),
          .s_axis_tready(s_axis_c2h_tready[f]),
          .m_axis_tvalid(c2h_valid[f]), .m_axis_tdata(c2h_data[f]), .m_axis_tlast(c2h_last[f]),
          .m_axis_ctrl_qid(c2h_qid[f]), .m_axis_ctrl_len(c2h_len[f]), .m_axis_tready(c2h_ready[f]),
          .frame_in_o(c2h_in[f]), .frame_drop_o(c2h_drop[f]),
          .rss_valid_o(mon_rss_valid[f]), .rss_hash_o(mon_rss_hash[32*f +: 32]),
          .rss_entry_o(mon_rss_entry[16*f +: 16]), .rss_drop_o(mon_rss_drop[f])
        );
      end else begin : gen_absent
        assign rdata_of[f] = '0;                                // never asked: its page answers DECERR
      end
    end

    qdma_h2c #(.NumFunc(NUM_PHYS_FUNC)) u_h2c (
      .axis_aclk, .axis_pwr_rstn, .axis_aresetn,
      .q_base_i(q_base), .num_q_i(num_q),
      .s_axis_tvalid(s_axis_qdma_h2c_tvalid), .s_axis_tdata(s_axis_qdma_h2c_tdata),
      .s_axis_tlast(s_axis_qdma_h2c_tlast), .s_axis_tuser_qid(s_axis_qdma_h2c_tuser_qid),
      .s_axis_tuser_len(s_axis_qdma_h2c_tuser_mdata[15:0]), .s_axis_tready(s_axis_qdma_h2c_tready),
      .m_axis_tvalid(m_axis_h2c_tvalid), .m_axis_tdata(m_axis_h2c_tdata), .m_axis_tkeep(m_axis_h2c_tkeep),
      .m_axis_tlast(m_axis_h2c_tlast), .m_axis_tuser_size(m_axis_h2c_tuser_size),
      .m_axis_tuser_src(m_axis_h2c_tuser_src), .m_axis_tuser_dst(m_axis_h2c_tuser_dst),
      .m_axis_tready(m_axis_h2c_tready),
      .frame_in_o(h2c_in), .frame_drop_o(h2c_drop)
    );

    logic [10:0] cpl_qid;
    logic [15:0] cpl_len, cpl_pkt_id;

    qdma_c2h #(.NumFunc(NUM_PHYS_FUNC)) u_c2h (
      .axis_aclk, .stream_rstn(c2h_rstn), .stop_i(c2h_stop), .frames_open_o(c2h_open),
      .s_axis_tvalid(c2h_valid), .s_axis_tdata(c2h_data), .s_axis_tlast(c2h_last),
      .s_axis_ctrl_qid(c2h_qid), .s_axis_ctrl_len(c2h_len), .s_axis_tready(c2h_ready),
      .m_axis_tvalid(m_axis_qdma_c2h_tvalid), .m_axis_tlast(m_axis_qdma_c2h_tlast),
      .m_axis_tdata(m_axis_qdma_c2h_tdata), .m_axis_tcrc(m_axis_qdma_c2h_tcrc),
      .m_axis_ctrl_len(m_axis_qdma_c2h_ctrl_len), .m_axis_ctrl_qid(m_axis_qdma_c2h_ctrl_qid),
      .m_axis_mty(m_axis_qdma_c2h_mty), .m_axis_tready(m_axis_qdma_c2h_tready),
      .m_axis_cpl_tvalid(m_axis_qdma_cpl_tvalid), .m_axis_cpl_qid(cpl_qid), .m_axis_cpl_len(cpl_len),
      .m_axis_cpl_pkt_id(cpl_pkt_id), .m_axis_cpl_tready(m_axis_qdma_cpl_tready),
      .frame_out_o(c2h_out)
    );

    // The completion as software sees it (section 11.4); dpar is odd parity over each 32 bits.
    assign m_axis_qdma_cpl_tdata = {448'd0, cpl_pkt_id, cpl_len, 5'd0, cpl_qid, 16'd0};
    assign m_axis_qdma_cpl_dpar  = {14'h3FFF, ~^{cpl_pkt_id, cpl_len}, ~^cpl_qid};
    assign m_axis_qdma_cpl_ctrl_qid             = cpl_qid;
    assign m_axis_qdma_cpl_ctrl_wait_pld_pkt_id = cpl_pkt_id;

    qdma_common_regs #(.NumFunc(NUM_PHYS_FUNC)) u_common_regs (
      .axis_aclk, .axis_aresetn, .stream_rstn(c2h_rstn),
      .reg_rd_i(common_rd), .reg_addr_i(common_addr), .reg_rdata_o(common_rdata),
      .c2h_in_i(c2h_in), .c2h_out_i(c2h_out), .c2h_drop_i(c2h_drop),
      .h2c_in_i(h2c_in), .h2c_drop_i(h2c_drop)
    );

    always_ff @(posedge axis_aclk) mon_h2c_drop_valid <= h2c_drop && axis_aresetn;  // as the counter has it
  end else begin : gen_no_path
    // No data path (section 11.5): what comes in is taken and forgotten, nothing goes out, registers echo.
    logic        unused_wr, rd;
    logic [14:0] addr;
    logic [31:0] unused_wdata, rdata_q;

    axil_regs #(.AddrWidth(15)) u_echo (
      .axil_aclk, .axil_aresetn,
      .s_axil_awvalid, .s_axil_awaddr, .s_axil_awready, .s_axil_wvalid, .s_axil_wdata, .s_axil_wready,
      .s_axil_bvalid, .s_axil_bresp, .s_axil_bready,
      .s_axil_arvalid, .s_axil_araddr, .s_axil_arready, .s_axil_rvalid, .s_axil_rdata, .s_axil_rresp, .s_axil_rready,
      .reg_clk(axis_aclk), .reg_rstn(axis_aresetn),
      .reg_wr(unused_wr), .reg_rd(rd), .reg_addr(addr), .reg_wdata(unused_wdata), .reg_rdata(rdata_q)
    );
    always_ff @(posedge axis_aclk) if (rd) rdata_q <= {16'h0D0A, 1'b0, addr};

    assign s_axis_qdma_h2c_tready               = 1'b1;
    assign s_axis_c2h_tready                    = '1;
    assign m_axis_qdma_c2h_tvalid               = 1'b0;
    assign m_axis_qdma_c2h_tlast                = 1'b0;
    assign m_axis_qdma_c2h_tdata                = '0;
    assign m_axis_qdma_c2h_tcrc                 = '0;
    assign m_axis_qdma_c2h_ctrl_len             = '0;
    assign m_axis_qdma_c2h_ctrl_qid             = '0;
    assign m_axis_qdma_c2h_mty                  = '0;
    assign m_axis_qdma_cpl_tvalid               = 1'b0;
    assign m_axis_qdma_cpl_tdata                = '0;
    assign m_axis_qdma_cpl_dpar                 = '1;
    assign m_axis_qdma_cpl_ctrl_qid             = '0;
    assign m_axis_qdma_cpl_ctrl_wait_pld_pkt_id = '0;
    assign m_axis_h2c_tvalid                    = '0;
    assign m_axis_h2c_tdata                     = '0;
    assign m_axis_h2c_tkeep                     = '0;
    assign m_axis_h2c_tlast                     = '0;
    assign m_axis_h2c_tuser_size                = '0;
    assign m_axis_h2c_tuser_src                 = '0;
    assign m_axis_h2c_tuser_dst                 = '0;
    assign mon_rss_valid                        = '0;
    assign mon_rss_hash                         = '0;
    assign mon_rss_entry                        = '0;
    assign mon_rss_drop                         = '0;
    assign mon_h2c_drop_valid                   = 1'b0;

    wire unused_inputs = ^{axis_pwr_rstn, s_axis_qdma_h2c_tvalid, s_axis_qdma_h2c_tlast, s_axis_qdma_h2c_tdata,
                           s_axis_qdma_h2c_tuser_qid, s_axis_qdma_h2c_tuser_mdata, m_axis_qdma_c2h_tready,
                           m_axis_qdma_cpl_tready, m_axis_h2c_tready, s_axis_c2h_tvalid, s_axis_c2h_tdata,
                           s_axis_c2h_tlast, s_axis_c2h_tuser_size};
  end
endmodule
`default_nettype wire
