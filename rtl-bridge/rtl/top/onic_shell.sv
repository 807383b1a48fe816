// The shell of an OpenNIC card with one QDMA subsystem, in upstream's simulation mode: the PCIe/QDMA IP and the MAC IP are
// replaced by plain streams.
//
//   RX: s_axis_cmac_rx -> MAC -> box 322 -> packet adapter -> box 250 -> function (hash, queue) -> m_axis_qdma_c2h, _cpl
//   TX: s_axis_qdma_h2c -> function match -> box 250 -> packet adapter -> box 322 -> MAC -> m_axis_cmac_tx
//
// Ports have upstream's names and meaning (shell.md section 4); instances are packed, instance 0 in the low bits. Clocks
// are inputs, of any frequency and phase: everything between them crosses by synchronisers, gray counters or
// handshakes. Every output is a function of registers only: no path leads from an input to an output in one cycle, so a
// harness may read outputs after an edge, decide, set inputs, and evaluate once an edge.
//
// Beyond upstream: cfg_min_pkt_len and cfg_max_pkt_len, the MAC's limits in bytes with FCS (change them only while no
// frame is on the way), rx_room_beats, and the monitors:
//   mon_rx_end   cmac_clk   each frame that arrived at port p, in order: 0 accepted, 1 overflow, 2 error, 3 too long, 4 disabled
//   mon_tx_end   axis_aclk  each frame that entered port p's TX adapter, in order: 0 accepted, 1 destination, 2 too long
//   mon_rss      axis_aclk  each C2H frame of function f, in order: hash, table entry, 1 if dropped for its queue
//   mon_h2c_drop axis_aclk  an H2C frame was dropped: no function owns its queue
//
// Plusargs:
//   +onic_counter_preload=HEX  value of every 64-bit counter's low word after reset, for tests of the carry
//   +onic_fault=N              only if compiled with ONIC_FAULTS: one planted fault, to try a scoreboard's alarm
//     1 rss_indirection     the table is indexed by hash[7:1] in place of hash[6:0]
//     2 rss_hash            word 4 of the key is ignored
//     3 rss_hash, qdma_h2c  the last beat's byte mask is one byte short: frames lose their last byte, both ways
//     4 rss_indirection     the function's base queue is not added: port 1's frames land in function 0's queues; no
//                           effect while every base is 0
//     5 packet_adapter_rx   each eighth frame vanishes, and every counter and monitor says that it was accepted
//     6 qdma_function       after a stall a frame gets its predecessor's queue
//
// Source: shell.md sections 1 to 8. USE_PHYS_FUNC 0 leaves out the data path of the QDMA (section 11.5).
`include "onic_assert.svh"
`default_nettype none
module onic_shell #(
  parameter bit [31:0]   BUILD_TIMESTAMP = 32'h0101_0000,
  parameter int unsigned MIN_PKT_LEN     = 64,         // bytes with FCS, 64 to 256; for plugins, as the MAC's limits are inputs
  parameter int unsigned MAX_PKT_LEN     = 1518,       // bytes with FCS, 256 to 9600; sizes the packet adapters' buffers
  parameter int unsigned USE_PHYS_FUNC   = 1,          // 0 or 1
  parameter int unsigned NUM_PHYS_FUNC   = 1,          // PCIe functions, 1 to 4
  parameter int unsigned NUM_QUEUE       = 512,        // power of two, 1 to 2048; checked only
  parameter int unsigned NUM_QDMA        = 1,          // only 1
  parameter int unsigned NUM_CMAC_PORT   = 1           // Ethernet ports, 1 or 2
) (
  // Clocks: 125 MHz, 250 MHz, 322.265625 MHz
  input  wire                         axil_aclk,
  input  wire                         axis_aclk,
  input  wire     [NUM_CMAC_PORT-1:0] cmac_clk,
  input  wire          [NUM_QDMA-1:0] powerup_rstn,    // axil_aclk; low for one cycle or more, stretched inside

  // The MAC's length limits, bytes with FCS, quasi static
  input  wire                  [15:0] cfg_min_pkt_len,
  input  wire                  [15:0] cfg_max_pkt_len,

  // BAR2 (axil_aclk)
  input  wire                         s_axil_sim_awvalid,
  input  wire                  [31:0] s_axil_sim_awaddr,
  output logic                        s_axil_sim_awready,
  input  wire                         s_axil_sim_wvalid,
  input  wire                  [31:0] s_axil_sim_wdata,
  output logic                        s_axil_sim_wready,
  output logic                        s_axil_sim_bvalid,
  output logic                  [1:0] s_axil_sim_bresp,
  input  wire                         s_axil_sim_bready,
  input  wire                         s_axil_sim_arvalid,
  input  wire                  [31:0] s_axil_sim_araddr,
  output logic                        s_axil_sim_arready,
  output logic                        s_axil_sim_rvalid,
  output logic                 [31:0] s_axil_sim_rdata,
  output logic                  [1:0] s_axil_sim_rresp,
  input  wire                         s_axil_sim_rready,

  // Host to card (axis_aclk)
  input  wire                         s_axis_qdma_h2c_sim_tvalid,
  input  wire                         s_axis_qdma_h2c_sim_tlast,
  input  wire                 [511:0] s_axis_qdma_h2c_sim_tdata,
  input  wire                  [31:0] s_axis_qdma_h2c_sim_tcrc,
  input  wire                  [10:0] s_axis_qdma_h2c_sim_tuser_qid,
  input  wire                   [2:0] s_axis_qdma_h2c_sim_tuser_port_id,
  input  wire                         s_axis_qdma_h2c_sim_tuser_err,
  input  wire                  [31:0] s_axis_qdma_h2c_sim_tuser_mdata,
  input  wire                   [5:0] s_axis_qdma_h2c_sim_tuser_mty,
  input  wire                         s_axis_qdma_h2c_sim_tuser_zero_byte,
  output logic                        s_axis_qdma_h2c_sim_tready,

  // Card to host, data (axis_aclk)
  output logic                        m_axis_qdma_c2h_sim_tvalid,
  output logic                        m_axis_qdma_c2h_sim_tlast,
  output logic                [511:0] m_axis_qdma_c2h_sim_tdata,
  output logic                 [31:0] m_axis_qdma_c2h_sim_tcrc,
  output logic                        m_axis_qdma_c2h_sim_ctrl_marker,
  output logic                  [2:0] m_axis_qdma_c2h_sim_ctrl_port_id,
  output logic                  [6:0] m_axis_qdma_c2h_sim_ctrl_ecc,
  output logic                 [15:0] m_axis_qdma_c2h_sim_ctrl_len,
  output logic                 [10:0] m_axis_qdma_c2h_sim_ctrl_qid,
  output logic                        m_axis_qdma_c2h_sim_ctrl_has_cmpt,
  output logic                  [5:0] m_axis_qdma_c2h_sim_mty,
  input  wire                         m_axis_qdma_c2h_sim_tready,

  // Card to host, completions (axis_aclk)
  output logic                        m_axis_qdma_cpl_sim_tvalid,
  output logic                [511:0] m_axis_qdma_cpl_sim_tdata,
  output logic                  [1:0] m_axis_qdma_cpl_sim_size,
  output logic                 [15:0] m_axis_qdma_cpl_sim_dpar,
  output logic                 [10:0] m_axis_qdma_cpl_sim_ctrl_qid,
  output logic                  [1:0] m_axis_qdma_cpl_sim_ctrl_cmpt_type,
  output logic                 [15:0] m_axis_qdma_cpl_sim_ctrl_wait_pld_pkt_id,
  output logic                  [2:0] m_axis_qdma_cpl_sim_ctrl_port_id,
  output logic                        m_axis_qdma_cpl_sim_ctrl_marker,
  output logic                        m_axis_qdma_cpl_sim_ctrl_user_trig,
  output logic                  [2:0] m_axis_qdma_cpl_sim_ctrl_col_idx,
  output logic                  [2:0] m_axis_qdma_cpl_sim_ctrl_err_idx,
  output logic                        m_axis_qdma_cpl_sim_ctrl_no_wrb_marker,
  input  wire                         m_axis_qdma_cpl_sim_tready,

  // Wire (port p on cmac_clk[p]); frames without FCS
  output logic    [NUM_CMAC_PORT-1:0] m_axis_cmac_tx_sim_tvalid,
  output logic [512*NUM_CMAC_PORT-1:0] m_axis_cmac_tx_sim_tdata,
  output logic [64*NUM_CMAC_PORT-1:0] m_axis_cmac_tx_sim_tkeep,
  output logic    [NUM_CMAC_PORT-1:0] m_axis_cmac_tx_sim_tlast,
  output logic    [NUM_CMAC_PORT-1:0] m_axis_cmac_tx_sim_tuser_err,
  input  wire     [NUM_CMAC_PORT-1:0] m_axis_cmac_tx_sim_tready,
  input  wire     [NUM_CMAC_PORT-1:0] s_axis_cmac_rx_sim_tvalid,
  input  wire [512*NUM_CMAC_PORT-1:0] s_axis_cmac_rx_sim_tdata,
  input  wire  [64*NUM_CMAC_PORT-1:0] s_axis_cmac_rx_sim_tkeep,
  input  wire     [NUM_CMAC_PORT-1:0] s_axis_cmac_rx_sim_tlast,
  input  wire     [NUM_CMAC_PORT-1:0] s_axis_cmac_rx_sim_tuser_err,

  // Monitors of port p
  output logic [16*NUM_CMAC_PORT-1:0] rx_room_beats,       // cmac_clk[p]: beats a new frame could use now, pessimistic
  output logic    [NUM_CMAC_PORT-1:0] mon_rx_end_valid,    // cmac_clk[p]
  output logic  [4*NUM_CMAC_PORT-1:0] mon_rx_end_reason,
  output logic    [NUM_CMAC_PORT-1:0] mon_tx_end_valid,    // axis_aclk
  output logic  [4*NUM_CMAC_PORT-1:0] mon_tx_end_reason,
  // Monitors of function f (axis_aclk)
  output logic    [NUM_PHYS_FUNC-1:0] mon_rss_valid,
  output logic [32*NUM_PHYS_FUNC-1:0] mon_rss_hash,
  output logic [16*NUM_PHYS_FUNC-1:0] mon_rss_entry,
  output logic    [NUM_PHYS_FUNC-1:0] mon_rss_drop,
  output logic                        mon_h2c_drop_valid
);
  `ONIC_ASSERT_PARAM(MIN_PKT_LEN, MIN_PKT_LEN >= 64 && MIN_PKT_LEN <= 256, "MIN_PKT_LEN must be 64 to 256")
  `ONIC_ASSERT_PARAM(MAX_PKT_LEN, MAX_PKT_LEN >= 256 && MAX_PKT_LEN <= 9600, "MAX_PKT_LEN must be 256 to 9600")
  `ONIC_ASSERT_PARAM(USE_PHYS_FUNC, USE_PHYS_FUNC <= 1, "USE_PHYS_FUNC must be 0 or 1")
  `ONIC_ASSERT_PARAM(NUM_PHYS_FUNC, NUM_PHYS_FUNC >= 1 && NUM_PHYS_FUNC <= 4, "NUM_PHYS_FUNC must be 1 to 4")
  `ONIC_ASSERT_PARAM(NUM_QUEUE, NUM_QUEUE >= 1 && NUM_QUEUE <= 2048 && (NUM_QUEUE & (NUM_QUEUE - 1)) == 0,
                     "NUM_QUEUE must be a power of two from 1 to 2048")
  `ONIC_ASSERT_PARAM(NUM_QDMA, NUM_QDMA == 1, "NUM_QDMA must be 1: a second QDMA is not modelled")
  `ONIC_ASSERT_PARAM(NUM_CMAC_PORT, NUM_CMAC_PORT == 1 || NUM_CMAC_PORT == 2, "NUM_CMAC_PORT must be 1 or 2")

  // ---- Power-up reset, in each clock ----
  logic                     axil_aresetn, axis_pwr_rstn;
  logic [NUM_CMAC_PORT-1:0] cmac_pwr_rstn;
  powerup_reset u_powerup (.clk(axil_aclk), .powerup_rstn_i(|powerup_rstn), .rstn_o(axil_aresetn));
  cdc_reset u_axis_pwr (.dst_clk(axis_aclk), .rstn_i(axil_aresetn), .rstn_o(axis_pwr_rstn));

  // ---- BAR2: windows. The numbers are the slaves of the crossbar. ----
  localparam int unsigned SysConfig = 0;
  localparam int unsigned Qdma0     = 1;
  localparam int unsigned Cmac0     = 2;               // port p at Cmac0 + 2 * p
  localparam int unsigned Adapter0  = 3;               // port p at Adapter0 + 2 * p
  localparam int unsigned SysMon    = 6;
  localparam int unsigned Qdma1     = 7;
  localparam int unsigned Box250    = 8;
  localparam int unsigned Box322    = 9;
  localparam int unsigned Cms       = 10;
  localparam int unsigned Qspi      = 11;
  localparam int unsigned NumSlaves = 12;
  localparam bit [31:0] MacBytes  = onic_regs_pkg::SHELL_CMAC_BYTES + onic_regs_pkg::SHELL_QSFP_BYTES;
  localparam bit [31:0] QdmaBytes = onic_regs_pkg::SHELL_QDMA_COMMON_BASE + onic_regs_pkg::SHELL_QDMA_COMMON_BYTES
                                    - onic_regs_pkg::SHELL_QDMA_FUNCTION_BASE;
  localparam bit [NumSlaves-1:0][31:0] Base = {       // slave 11 first
    onic_regs_pkg::SHELL_QSPI_BASE,           onic_regs_pkg::SHELL_CMS_BASE,
    onic_regs_pkg::SHELL_BOX_322_BASE,        onic_regs_pkg::SHELL_BOX_250_BASE,
    onic_regs_pkg::SHELL_QDMA_1_BASE,         onic_regs_pkg::SHELL_SYSMON_BASE,
    onic_regs_pkg::SHELL_PACKET_ADAPTER_BASE + onic_regs_pkg::SHELL_PACKET_ADAPTER_STRIDE,
    onic_regs_pkg::SHELL_CMAC_BASE + onic_regs_pkg::SHELL_CMAC_STRIDE,
    onic_regs_pkg::SHELL_PACKET_ADAPTER_BASE, onic_regs_pkg::SHELL_CMAC_BASE,
    onic_regs_pkg::SHELL_QDMA_FUNCTION_BASE,  onic_regs_pkg::SHELL_SYSTEM_CONFIG_BASE};
  localparam bit [NumSlaves-1:0][31:0] Size = {
    onic_regs_pkg::SHELL_QSPI_BYTES,           onic_regs_pkg::SHELL_CMS_BYTES,
    onic_regs_pkg::SHELL_BOX_322_BYTES,        onic_regs_pkg::SHELL_BOX_250_BYTES,
    onic_regs_pkg::SHELL_QDMA_1_BYTES,         onic_regs_pkg::SHELL_SYSMON_BYTES,
    onic_regs_pkg::SHELL_PACKET_ADAPTER_BYTES, MacBytes,
    onic_regs_pkg::SHELL_PACKET_ADAPTER_BYTES, MacBytes,
    QdmaBytes,                                 onic_regs_pkg::SHELL_SYSTEM_CONFIG_BYTES};

  logic [NumSlaves-1:0]       awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
  logic [NumSlaves-1:0]       slave_live;
  logic [NumSlaves-1:0][31:0] awaddr, wdata, araddr, rdata;
  logic [NumSlaves-1:0] [1:0] bresp, rresp;

  axil_xbar #(.NumSlaves(NumSlaves), .Base(Base), .Size(Size)) u_xbar (
    .axil_aclk, .axil_aresetn, .slave_live_i(slave_live),
    .s_axil_awvalid(s_axil_sim_awvalid), .s_axil_awaddr(s_axil_sim_awaddr), .s_axil_awready(s_axil_sim_awready),
    .s_axil_wvalid(s_axil_sim_wvalid), .s_axil_wdata(s_axil_sim_wdata), .s_axil_wready(s_axil_sim_wready),
    .s_axil_bvalid(s_axil_sim_bvalid), .s_axil_bresp(s_axil_sim_bresp), .s_axil_bready(s_axil_sim_bready),
    .s_axil_arvalid(s_axil_sim_arvalid), .s_axil_araddr(s_axil_sim_araddr), .s_axil_arready(s_axil_sim_arready),
    .s_axil_rvalid(s_axil_sim_rvalid), .s_axil_rdata(s_axil_sim_rdata), .s_axil_rresp(s_axil_sim_rresp),
    .s_axil_rready(s_axil_sim_rready),
    .m_axil_awvalid(awvalid), .m_axil_awaddr(awaddr), .m_axil_awready(awready), .m_axil_wvalid(wvalid),
    .m_axil_wdata(wdata), .m_axil_wready(wready), .m_axil_bvalid(bvalid), .m_axil_bresp(bresp), .m_axil_bready(bready),
    .m_axil_arvalid(arvalid), .m_axil_araddr(araddr), .m_axil_arready(arready), .m_axil_rvalid(rvalid),
    .m_axil_rdata(rdata), .m_axil_rresp(rresp), .m_axil_rready(rready)
  );

  // ---- Module resets: requests from the system page, one generator a module, status back ----
  logic [31:0] shell_rstn_req, shell_rst_done, user_rstn_req, user_rst_done;
  logic        box_250_done, box_322_done;
  system_config #(.BuildTimestamp(BUILD_TIMESTAMP)) u_system_config (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid(awvalid[SysConfig]), .s_axil_awaddr(awaddr[SysConfig]), .s_axil_awready(awready[SysConfig]),
    .s_axil_wvalid(wvalid[SysConfig]), .s_axil_wdata(wdata[SysConfig]), .s_axil_wready(wready[SysConfig]),
    .s_axil_bvalid(bvalid[SysConfig]), .s_axil_bresp(bresp[SysConfig]), .s_axil_bready(bready[SysConfig]),
    .s_axil_arvalid(arvalid[SysConfig]), .s_axil_araddr(araddr[SysConfig]), .s_axil_arready(arready[SysConfig]),
    .s_axil_rvalid(rvalid[SysConfig]), .s_axil_rdata(rdata[SysConfig]), .s_axil_rresp(rresp[SysConfig]),
    .s_axil_rready(rready[SysConfig]),
    .shell_rstn_o(shell_rstn_req), .shell_rst_done_i(shell_rst_done),
    .user_rstn_o(user_rstn_req), .user_rst_done_i(user_rst_done)
  );

  logic                     qdma_rstn, qdma_done, qdma_axis_rstn;
  logic [NUM_CMAC_PORT-1:0] mac_rstn, mac_done, adapter_rstn, adapter_done;
  mod_reset u_qdma_reset (
    .axil_aclk, .axil_aresetn, .mod_rstn_i(shell_rstn_req[0]), .rstn_o(qdma_rstn), .mod_rst_done_o(qdma_done));
  cdc_reset u_qdma_axis_reset (.dst_clk(axis_aclk), .rstn_i(qdma_rstn), .rstn_o(qdma_axis_rstn));

  // Bit 0 QDMA, bits 4 + 4p MAC and 5 + 4p adapter of port p; bits without a module read 1.
  always_comb begin
    shell_rst_done    = '1;
    shell_rst_done[0] = qdma_done;
    for (int unsigned p = 0; p < NUM_CMAC_PORT; p++) begin
      shell_rst_done[4 + 4*p] = mac_done[p];
      shell_rst_done[5 + 4*p] = adapter_done[p];
    end
  end
  // Bits 15:0 plugin of box 250, 23:16 plugin of box 322, 30 box 322, 31 box 250.
  assign user_rst_done[29:24] = '1;
  assign user_rst_done[30]    = box_322_done;
  assign user_rst_done[31]    = box_250_done;
  wire unused_requests = ^{shell_rstn_req, user_rstn_req[29:24]};

  // The shell answers for a plugin that is in reset; our own blocks answer for themselves.
  always_comb begin
    slave_live         = '1;
    slave_live[Box250] = box_250_done;
    slave_live[Box322] = box_322_done;
  end

  // ---- Placeholders ----
  axil_echo #(.Prefix(16'h0000), .AddrBits(0)) u_sysmon (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid(awvalid[SysMon]), .s_axil_awaddr(awaddr[SysMon]), .s_axil_awready(awready[SysMon]),
    .s_axil_wvalid(wvalid[SysMon]), .s_axil_wdata(wdata[SysMon]), .s_axil_wready(wready[SysMon]),
    .s_axil_bvalid(bvalid[SysMon]), .s_axil_bresp(bresp[SysMon]), .s_axil_bready(bready[SysMon]),
    .s_axil_arvalid(arvalid[SysMon]), .s_axil_araddr(araddr[SysMon]), .s_axil_arready(arready[SysMon]),
    .s_axil_rvalid(rvalid[SysMon]), .s_axil_rdata(rdata[SysMon]), .s_axil_rresp(rresp[SysMon]), .s_axil_rready(rready[SysMon])
  );
  axil_echo #(.Prefix(16'h0000), .AddrBits(12)) u_qdma_1 (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid(awvalid[Qdma1]), .s_axil_awaddr(awaddr[Qdma1]), .s_axil_awready(awready[Qdma1]),
    .s_axil_wvalid(wvalid[Qdma1]), .s_axil_wdata(wdata[Qdma1]), .s_axil_wready(wready[Qdma1]),
    .s_axil_bvalid(bvalid[Qdma1]), .s_axil_bresp(bresp[Qdma1]), .s_axil_bready(bready[Qdma1]),
    .s_axil_arvalid(arvalid[Qdma1]), .s_axil_araddr(araddr[Qdma1]), .s_axil_arready(arready[Qdma1]),
    .s_axil_rvalid(rvalid[Qdma1]), .s_axil_rdata(rdata[Qdma1]), .s_axil_rresp(rresp[Qdma1]), .s_axil_rready(rready[Qdma1])
  );
  axil_echo #(.Prefix(16'h0000), .AddrBits(0)) u_cms (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid(awvalid[Cms]), .s_axil_awaddr(awaddr[Cms]), .s_axil_awready(awready[Cms]),
    .s_axil_wvalid(wvalid[Cms]), .s_axil_wdata(wdata[Cms]), .s_axil_wready(wready[Cms]),
    .s_axil_bvalid(bvalid[Cms]), .s_axil_bresp(bresp[Cms]), .s_axil_bready(bready[Cms]),
    .s_axil_arvalid(arvalid[Cms]), .s_axil_araddr(araddr[Cms]), .s_axil_arready(arready[Cms]),
    .s_axil_rvalid(rvalid[Cms]), .s_axil_rdata(rdata[Cms]), .s_axil_rresp(rresp[Cms]), .s_axil_rready(rready[Cms])
  );
  axil_echo #(.Prefix(16'h0000), .AddrBits(0)) u_qspi (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid(awvalid[Qspi]), .s_axil_awaddr(awaddr[Qspi]), .s_axil_awready(awready[Qspi]),
    .s_axil_wvalid(wvalid[Qspi]), .s_axil_wdata(wdata[Qspi]), .s_axil_wready(wready[Qspi]),
    .s_axil_bvalid(bvalid[Qspi]), .s_axil_bresp(bresp[Qspi]), .s_axil_bready(bready[Qspi]),
    .s_axil_arvalid(arvalid[Qspi]), .s_axil_araddr(araddr[Qspi]), .s_axil_arready(arready[Qspi]),
    .s_axil_rvalid(rvalid[Qspi]), .s_axil_rdata(rdata[Qspi]), .s_axil_rresp(rresp[Qspi]), .s_axil_rready(rready[Qspi])
  );

  // ---- QDMA subsystem ----
  logic     [NUM_PHYS_FUNC-1:0] h2c_tvalid, h2c_tlast, h2c_tready, c2h_tvalid, c2h_tlast, c2h_tready;
  logic [512*NUM_PHYS_FUNC-1:0] h2c_tdata, c2h_tdata;
  logic  [64*NUM_PHYS_FUNC-1:0] h2c_tkeep, c2h_tkeep;
  logic  [16*NUM_PHYS_FUNC-1:0] h2c_tuser_size, h2c_tuser_src, h2c_tuser_dst;
  logic  [16*NUM_PHYS_FUNC-1:0] c2h_tuser_size, c2h_tuser_src, c2h_tuser_dst;
  wire unused_c2h = ^{c2h_tkeep, c2h_tuser_src, c2h_tuser_dst};
  wire unused_h2c = ^{s_axis_qdma_h2c_sim_tcrc, s_axis_qdma_h2c_sim_tuser_port_id, s_axis_qdma_h2c_sim_tuser_err,
                      s_axis_qdma_h2c_sim_tuser_mty, s_axis_qdma_h2c_sim_tuser_zero_byte};

  qdma_subsystem #(.USE_PHYS_FUNC(USE_PHYS_FUNC), .NUM_PHYS_FUNC(NUM_PHYS_FUNC)) u_qdma (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid(awvalid[Qdma0]), .s_axil_awaddr(awaddr[Qdma0]), .s_axil_awready(awready[Qdma0]),
    .s_axil_wvalid(wvalid[Qdma0]), .s_axil_wdata(wdata[Qdma0]), .s_axil_wready(wready[Qdma0]),
    .s_axil_bvalid(bvalid[Qdma0]), .s_axil_bresp(bresp[Qdma0]), .s_axil_bready(bready[Qdma0]),
    .s_axil_arvalid(arvalid[Qdma0]), .s_axil_araddr(araddr[Qdma0]), .s_axil_arready(arready[Qdma0]),
    .s_axil_rvalid(rvalid[Qdma0]), .s_axil_rdata(rdata[Qdma0]), .s_axil_rresp(rresp[Qdma0]), .s_axil_rready(rready[Qdma0]),
    .axis_aclk, .axis_pwr_rstn, .axis_aresetn(qdma_axis_rstn),
    .s_axis_qdma_h2c_tvalid(s_axis_qdma_h2c_sim_tvalid), .s_axis_qdma_h2c_tlast(s_axis_qdma_h2c_sim_tlast),
    .s_axis_qdma_h2c_tdata(s_axis_qdma_h2c_sim_tdata), .s_axis_qdma_h2c_tuser_qid(s_axis_qdma_h2c_sim_tuser_qid),
    .s_axis_qdma_h2c_tuser_mdata(s_axis_qdma_h2c_sim_tuser_mdata), .s_axis_qdma_h2c_tready(s_axis_qdma_h2c_sim_tready),
    .m_axis_qdma_c2h_tvalid(m_axis_qdma_c2h_sim_tvalid), .m_axis_qdma_c2h_tlast(m_axis_qdma_c2h_sim_tlast),
    .m_axis_qdma_c2h_tdata(m_axis_qdma_c2h_sim_tdata), .m_axis_qdma_c2h_tcrc(m_axis_qdma_c2h_sim_tcrc),
    .m_axis_qdma_c2h_ctrl_marker(m_axis_qdma_c2h_sim_ctrl_marker),
    .m_axis_qdma_c2h_ctrl_port_id(m_axis_qdma_c2h_sim_ctrl_port_id),
    .m_axis_qdma_c2h_ctrl_ecc(m_axis_qdma_c2h_sim_ctrl_ecc), .m_axis_qdma_c2h_ctrl_len(m_axis_qdma_c2h_sim_ctrl_len),
    .m_axis_qdma_c2h_ctrl_qid(m_axis_qdma_c2h_sim_ctrl_qid),
    .m_axis_qdma_c2h_ctrl_has_cmpt(m_axis_qdma_c2h_sim_ctrl_has_cmpt),
    .m_axis_qdma_c2h_mty(m_axis_qdma_c2h_sim_mty), .m_axis_qdma_c2h_tready(m_axis_qdma_c2h_sim_tready),
    .m_axis_qdma_cpl_tvalid(m_axis_qdma_cpl_sim_tvalid), .m_axis_qdma_cpl_tdata(m_axis_qdma_cpl_sim_tdata),
    .m_axis_qdma_cpl_size(m_axis_qdma_cpl_sim_size), .m_axis_qdma_cpl_dpar(m_axis_qdma_cpl_sim_dpar),
    .m_axis_qdma_cpl_ctrl_qid(m_axis_qdma_cpl_sim_ctrl_qid),
    .m_axis_qdma_cpl_ctrl_cmpt_type(m_axis_qdma_cpl_sim_ctrl_cmpt_type),
    .m_axis_qdma_cpl_ctrl_wait_pld_pkt_id(m_axis_qdma_cpl_sim_ctrl_wait_pld_pkt_id),
    .m_axis_qdma_cpl_ctrl_port_id(m_axis_qdma_cpl_sim_ctrl_port_id),
    .m_axis_qdma_cpl_ctrl_marker(m_axis_qdma_cpl_sim_ctrl_marker),
    .m_axis_qdma_cpl_ctrl_user_trig(m_axis_qdma_cpl_sim_ctrl_user_trig),
    .m_axis_qdma_cpl_ctrl_col_idx(m_axis_qdma_cpl_sim_ctrl_col_idx),
    .m_axis_qdma_cpl_ctrl_err_idx(m_axis_qdma_cpl_sim_ctrl_err_idx),
    .m_axis_qdma_cpl_ctrl_no_wrb_marker(m_axis_qdma_cpl_sim_ctrl_no_wrb_marker),
    .m_axis_qdma_cpl_tready(m_axis_qdma_cpl_sim_tready),
    .m_axis_h2c_tvalid(h2c_tvalid), .m_axis_h2c_tdata(h2c_tdata), .m_axis_h2c_tkeep(h2c_tkeep),
    .m_axis_h2c_tlast(h2c_tlast), .m_axis_h2c_tuser_size(h2c_tuser_size), .m_axis_h2c_tuser_src(h2c_tuser_src),
    .m_axis_h2c_tuser_dst(h2c_tuser_dst), .m_axis_h2c_tready(h2c_tready),
    .s_axis_c2h_tvalid(c2h_tvalid), .s_axis_c2h_tdata(c2h_tdata), .s_axis_c2h_tlast(c2h_tlast),
    .s_axis_c2h_tuser_size(c2h_tuser_size), .s_axis_c2h_tready(c2h_tready),
    .mon_rss_valid, .mon_rss_hash, .mon_rss_entry, .mon_rss_drop, .mon_h2c_drop_valid
  );

  // ---- Box 250 ----
  logic     [NUM_CMAC_PORT-1:0] atx_tvalid, atx_tlast, atx_tready, arx_tvalid, arx_tlast, arx_tready;
  logic [512*NUM_CMAC_PORT-1:0] atx_tdata, arx_tdata;
  logic  [64*NUM_CMAC_PORT-1:0] atx_tkeep, arx_tkeep;
  logic  [16*NUM_CMAC_PORT-1:0] atx_tuser_size, atx_tuser_src, atx_tuser_dst;
  logic  [16*NUM_CMAC_PORT-1:0] arx_tuser_size, arx_tuser_src, arx_tuser_dst;
  wire unused_atx_src = ^atx_tuser_src;

  box_250mhz #(
    .MIN_PKT_LEN(MIN_PKT_LEN), .MAX_PKT_LEN(MAX_PKT_LEN), .USE_PHYS_FUNC(USE_PHYS_FUNC), .NUM_PHYS_FUNC(NUM_PHYS_FUNC),
    .NUM_QDMA(NUM_QDMA), .NUM_CMAC_PORT(NUM_CMAC_PORT)
  ) u_box_250 (
    .s_axil_awvalid(awvalid[Box250]), .s_axil_awaddr(awaddr[Box250]), .s_axil_awready(awready[Box250]),
    .s_axil_wvalid(wvalid[Box250]), .s_axil_wdata(wdata[Box250]), .s_axil_wready(wready[Box250]),
    .s_axil_bvalid(bvalid[Box250]), .s_axil_bresp(bresp[Box250]), .s_axil_bready(bready[Box250]),
    .s_axil_arvalid(arvalid[Box250]), .s_axil_araddr(araddr[Box250]), .s_axil_arready(arready[Box250]),
    .s_axil_rvalid(rvalid[Box250]), .s_axil_rdata(rdata[Box250]), .s_axil_rresp(rresp[Box250]), .s_axil_rready(rready[Box250]),
    .s_axis_qdma_h2c_tvalid(h2c_tvalid), .s_axis_qdma_h2c_tdata(h2c_tdata), .s_axis_qdma_h2c_tkeep(h2c_tkeep),
    .s_axis_qdma_h2c_tlast(h2c_tlast), .s_axis_qdma_h2c_tuser_size(h2c_tuser_size),
    .s_axis_qdma_h2c_tuser_src(h2c_tuser_src), .s_axis_qdma_h2c_tuser_dst(h2c_tuser_dst),
    .s_axis_qdma_h2c_tready(h2c_tready),
    .m_axis_qdma_c2h_tvalid(c2h_tvalid), .m_axis_qdma_c2h_tdata(c2h_tdata), .m_axis_qdma_c2h_tkeep(c2h_tkeep),
    .m_axis_qdma_c2h_tlast(c2h_tlast), .m_axis_qdma_c2h_tuser_size(c2h_tuser_size),
    .m_axis_qdma_c2h_tuser_src(c2h_tuser_src), .m_axis_qdma_c2h_tuser_dst(c2h_tuser_dst),
    .m_axis_qdma_c2h_tready(c2h_tready),
    .m_axis_adap_tx_250mhz_tvalid(atx_tvalid), .m_axis_adap_tx_250mhz_tdata(atx_tdata),
    .m_axis_adap_tx_250mhz_tkeep(atx_tkeep), .m_axis_adap_tx_250mhz_tlast(atx_tlast),
    .m_axis_adap_tx_250mhz_tuser_size(atx_tuser_size), .m_axis_adap_tx_250mhz_tuser_src(atx_tuser_src),
    .m_axis_adap_tx_250mhz_tuser_dst(atx_tuser_dst), .m_axis_adap_tx_250mhz_tready(atx_tready),
    .s_axis_adap_rx_250mhz_tvalid(arx_tvalid), .s_axis_adap_rx_250mhz_tdata(arx_tdata),
    .s_axis_adap_rx_250mhz_tkeep(arx_tkeep), .s_axis_adap_rx_250mhz_tlast(arx_tlast),
    .s_axis_adap_rx_250mhz_tuser_size(arx_tuser_size), .s_axis_adap_rx_250mhz_tuser_src(arx_tuser_src),
    .s_axis_adap_rx_250mhz_tuser_dst(arx_tuser_dst), .s_axis_adap_rx_250mhz_tready(arx_tready),
    .mod_rstn(user_rstn_req[15:0]), .mod_rst_done(user_rst_done[15:0]),
    .box_rstn(user_rstn_req[31]), .box_rst_done(box_250_done), .axil_aclk, .axis_aclk
  );

  // ---- Box 322 ----
  logic     [NUM_CMAC_PORT-1:0] btx_tvalid, btx_tlast, btx_tuser_err, btx_tready;          // adapter -> box
  logic     [NUM_CMAC_PORT-1:0] mtx_tvalid, mtx_tlast, mtx_tuser_err, mtx_tready;          // box -> MAC
  logic     [NUM_CMAC_PORT-1:0] mrx_tvalid, mrx_tlast, mrx_tuser_err;                      // MAC -> box
  logic     [NUM_CMAC_PORT-1:0] brx_tvalid, brx_tlast, brx_tuser_err;                      // box -> adapter
  logic [512*NUM_CMAC_PORT-1:0] btx_tdata, mtx_tdata, mrx_tdata, brx_tdata;
  logic  [64*NUM_CMAC_PORT-1:0] btx_tkeep, mtx_tkeep, mrx_tkeep, brx_tkeep;

  box_322mhz #(.MIN_PKT_LEN(MIN_PKT_LEN), .MAX_PKT_LEN(MAX_PKT_LEN), .NUM_CMAC_PORT(NUM_CMAC_PORT)) u_box_322 (
    .s_axil_awvalid(awvalid[Box322]), .s_axil_awaddr(awaddr[Box322]), .s_axil_awready(awready[Box322]),
    .s_axil_wvalid(wvalid[Box322]), .s_axil_wdata(wdata[Box322]), .s_axil_wready(wready[Box322]),
    .s_axil_bvalid(bvalid[Box322]), .s_axil_bresp(bresp[Box322]), .s_axil_bready(bready[Box322]),
    .s_axil_arvalid(arvalid[Box322]), .s_axil_araddr(araddr[Box322]), .s_axil_arready(arready[Box322]),
    .s_axil_rvalid(rvalid[Box322]), .s_axil_rdata(rdata[Box322]), .s_axil_rresp(rresp[Box322]), .s_axil_rready(rready[Box322]),
    .s_axis_adap_tx_322mhz_tvalid(btx_tvalid), .s_axis_adap_tx_322mhz_tdata(btx_tdata),
    .s_axis_adap_tx_322mhz_tkeep(btx_tkeep), .s_axis_adap_tx_322mhz_tlast(btx_tlast),
    .s_axis_adap_tx_322mhz_tuser_err(btx_tuser_err), .s_axis_adap_tx_322mhz_tready(btx_tready),
    .m_axis_adap_rx_322mhz_tvalid(brx_tvalid), .m_axis_adap_rx_322mhz_tdata(brx_tdata),
    .m_axis_adap_rx_322mhz_tkeep(brx_tkeep), .m_axis_adap_rx_322mhz_tlast(brx_tlast),
    .m_axis_adap_rx_322mhz_tuser_err(brx_tuser_err),
    .m_axis_cmac_tx_tvalid(mtx_tvalid), .m_axis_cmac_tx_tdata(mtx_tdata), .m_axis_cmac_tx_tkeep(mtx_tkeep),
    .m_axis_cmac_tx_tlast(mtx_tlast), .m_axis_cmac_tx_tuser_err(mtx_tuser_err), .m_axis_cmac_tx_tready(mtx_tready),
    .s_axis_cmac_rx_tvalid(mrx_tvalid), .s_axis_cmac_rx_tdata(mrx_tdata), .s_axis_cmac_rx_tkeep(mrx_tkeep),
    .s_axis_cmac_rx_tlast(mrx_tlast), .s_axis_cmac_rx_tuser_err(mrx_tuser_err),
    .mod_rstn(user_rstn_req[23:16]), .mod_rst_done(user_rst_done[23:16]),
    .box_rstn(user_rstn_req[30]), .box_rst_done(box_322_done), .axil_aclk, .cmac_clk
  );

  // ---- Ports ----
  for (genvar p = 0; p < 2; p++) begin : gen_port
    localparam int unsigned MacSlave     = Cmac0 + 2 * p;
    localparam int unsigned AdapterSlave = Adapter0 + 2 * p;
    if (p >= NUM_CMAC_PORT) begin : gen_absent
      axil_echo #(.Prefix(16'hC100), .AddrBits(13)) u_mac (
        .axil_aclk, .axil_aresetn,
        .s_axil_awvalid(awvalid[MacSlave]), .s_axil_awaddr(awaddr[MacSlave]), .s_axil_awready(awready[MacSlave]),
        .s_axil_wvalid(wvalid[MacSlave]), .s_axil_wdata(wdata[MacSlave]), .s_axil_wready(wready[MacSlave]),
        .s_axil_bvalid(bvalid[MacSlave]), .s_axil_bresp(bresp[MacSlave]), .s_axil_bready(bready[MacSlave]),
        .s_axil_arvalid(arvalid[MacSlave]), .s_axil_araddr(araddr[MacSlave]), .s_axil_arready(arready[MacSlave]),
        .s_axil_rvalid(rvalid[MacSlave]), .s_axil_rdata(rdata[MacSlave]), .s_axil_rresp(rresp[MacSlave]),
        .s_axil_rready(rready[MacSlave])
      );
      axil_echo #(.Prefix(16'hC100), .AddrBits(13)) u_adapter (
        .axil_aclk, .axil_aresetn,
        .s_axil_awvalid(awvalid[AdapterSlave]), .s_axil_awaddr(awaddr[AdapterSlave]), .s_axil_awready(awready[AdapterSlave]),
        .s_axil_wvalid(wvalid[AdapterSlave]), .s_axil_wdata(wdata[AdapterSlave]), .s_axil_wready(wready[AdapterSlave]),
        .s_axil_bvalid(bvalid[AdapterSlave]), .s_axil_bresp(bresp[AdapterSlave]), .s_axil_bready(bready[AdapterSlave]),
        .s_axil_arvalid(arvalid[AdapterSlave]), .s_axil_araddr(araddr[AdapterSlave]), .s_axil_arready(arready[AdapterSlave]),
        .s_axil_rvalid(rvalid[AdapterSlave]), .s_axil_rdata(rdata[AdapterSlave]), .s_axil_rresp(rresp[AdapterSlave]),
        .s_axil_rready(rready[AdapterSlave])
      );
    end else begin : gen_present
      logic mac_cmac_rstn, adapter_cmac_rstn, adapter_axis_rstn, adapter_live, rx_disabled, rx_wire, tx_wire;
      logic adapter_generator_done, adapter_live_axil;
      mod_reset u_mac_reset (.axil_aclk, .axil_aresetn, .mod_rstn_i(shell_rstn_req[4 + 4*p]), .rstn_o(mac_rstn[p]),
                             .mod_rst_done_o(mac_done[p]));
      mod_reset u_adapter_reset (.axil_aclk, .axil_aresetn, .mod_rstn_i(shell_rstn_req[5 + 4*p]), .rstn_o(adapter_rstn[p]),
                                 .mod_rst_done_o(adapter_generator_done));
      cdc_reset u_cmac_pwr     (.dst_clk(cmac_clk[p]), .rstn_i(axil_aresetn), .rstn_o(cmac_pwr_rstn[p]));
      cdc_reset u_mac_cmac     (.dst_clk(cmac_clk[p]), .rstn_i(mac_rstn[p]), .rstn_o(mac_cmac_rstn));
      cdc_reset u_adapter_cmac (.dst_clk(cmac_clk[p]), .rstn_i(adapter_rstn[p]), .rstn_o(adapter_cmac_rstn));
      // The adapter's reset is over when the generator's is and the adapter says so.
      cdc_sync  u_adapter_live (.dst_clk(axil_aclk), .dst_rstn(adapter_rstn[p]), .d_i(adapter_live), .q_o(adapter_live_axil));
      assign adapter_done[p] = adapter_generator_done && adapter_live_axil;
      cdc_reset u_adapter_axis (.dst_clk(axis_aclk), .rstn_i(adapter_rstn[p]), .rstn_o(adapter_axis_rstn));

      cmac_subsystem #(.PortId(p)) u_mac (
        .axil_aclk, .axil_aresetn,
        .s_axil_awvalid(awvalid[MacSlave]), .s_axil_awaddr(awaddr[MacSlave]), .s_axil_awready(awready[MacSlave]),
        .s_axil_wvalid(wvalid[MacSlave]), .s_axil_wdata(wdata[MacSlave]), .s_axil_wready(wready[MacSlave]),
        .s_axil_bvalid(bvalid[MacSlave]), .s_axil_bresp(bresp[MacSlave]), .s_axil_bready(bready[MacSlave]),
        .s_axil_arvalid(arvalid[MacSlave]), .s_axil_araddr(araddr[MacSlave]), .s_axil_arready(arready[MacSlave]),
        .s_axil_rvalid(rvalid[MacSlave]), .s_axil_rdata(rdata[MacSlave]), .s_axil_rresp(rresp[MacSlave]),
        .s_axil_rready(rready[MacSlave]),
        .block_rstn(mac_rstn[p]), .cmac_clk(cmac_clk[p]), .cmac_rstn(mac_cmac_rstn), .cmac_pwr_rstn(cmac_pwr_rstn[p]),
        .min_pkt_len_i(cfg_min_pkt_len), .max_pkt_len_i(cfg_max_pkt_len),
        .s_axis_tx_tvalid(mtx_tvalid[p]), .s_axis_tx_tdata(mtx_tdata[512*p +: 512]), .s_axis_tx_tkeep(mtx_tkeep[64*p +: 64]),
        .s_axis_tx_tlast(mtx_tlast[p]), .s_axis_tx_tuser_err(mtx_tuser_err[p]), .s_axis_tx_tready(mtx_tready[p]),
        .m_axis_rx_tvalid(mrx_tvalid[p]), .m_axis_rx_tdata(mrx_tdata[512*p +: 512]), .m_axis_rx_tkeep(mrx_tkeep[64*p +: 64]),
        .m_axis_rx_tlast(mrx_tlast[p]), .m_axis_rx_tuser_err(mrx_tuser_err[p]),
        .rx_disabled_o(rx_disabled), .rx_wire_o(rx_wire), .tx_wire_o(tx_wire),
        .m_axis_cmac_tx_tvalid(m_axis_cmac_tx_sim_tvalid[p]), .m_axis_cmac_tx_tdata(m_axis_cmac_tx_sim_tdata[512*p +: 512]),
        .m_axis_cmac_tx_tkeep(m_axis_cmac_tx_sim_tkeep[64*p +: 64]), .m_axis_cmac_tx_tlast(m_axis_cmac_tx_sim_tlast[p]),
        .m_axis_cmac_tx_tuser_err(m_axis_cmac_tx_sim_tuser_err[p]), .m_axis_cmac_tx_tready(m_axis_cmac_tx_sim_tready[p]),
        .s_axis_cmac_rx_tvalid(s_axis_cmac_rx_sim_tvalid[p]), .s_axis_cmac_rx_tdata(s_axis_cmac_rx_sim_tdata[512*p +: 512]),
        .s_axis_cmac_rx_tkeep(s_axis_cmac_rx_sim_tkeep[64*p +: 64]), .s_axis_cmac_rx_tlast(s_axis_cmac_rx_sim_tlast[p]),
        .s_axis_cmac_rx_tuser_err(s_axis_cmac_rx_sim_tuser_err[p])
      );

      packet_adapter #(.PortId(p), .MAX_PKT_LEN(MAX_PKT_LEN)) u_adapter (
        .axil_aclk, .axil_aresetn,
        .s_axil_awvalid(awvalid[AdapterSlave]), .s_axil_awaddr(awaddr[AdapterSlave]), .s_axil_awready(awready[AdapterSlave]),
        .s_axil_wvalid(wvalid[AdapterSlave]), .s_axil_wdata(wdata[AdapterSlave]), .s_axil_wready(wready[AdapterSlave]),
        .s_axil_bvalid(bvalid[AdapterSlave]), .s_axil_bresp(bresp[AdapterSlave]), .s_axil_bready(bready[AdapterSlave]),
        .s_axil_arvalid(arvalid[AdapterSlave]), .s_axil_araddr(araddr[AdapterSlave]), .s_axil_arready(arready[AdapterSlave]),
        .s_axil_rvalid(rvalid[AdapterSlave]), .s_axil_rdata(rdata[AdapterSlave]), .s_axil_rresp(rresp[AdapterSlave]),
        .s_axil_rready(rready[AdapterSlave]),
        .axis_aclk, .axis_rstn(adapter_axis_rstn), .axis_pwr_rstn,
        .s_axis_tx_tvalid(atx_tvalid[p]), .s_axis_tx_tdata(atx_tdata[512*p +: 512]), .s_axis_tx_tkeep(atx_tkeep[64*p +: 64]),
        .s_axis_tx_tlast(atx_tlast[p]), .s_axis_tx_tuser_size(atx_tuser_size[16*p +: 16]),
        .s_axis_tx_tuser_dst(atx_tuser_dst[16*p +: 16]), .s_axis_tx_tready(atx_tready[p]),
        .m_axis_rx_tvalid(arx_tvalid[p]), .m_axis_rx_tdata(arx_tdata[512*p +: 512]), .m_axis_rx_tkeep(arx_tkeep[64*p +: 64]),
        .m_axis_rx_tlast(arx_tlast[p]), .m_axis_rx_tuser_size(arx_tuser_size[16*p +: 16]),
        .m_axis_rx_tuser_src(arx_tuser_src[16*p +: 16]), .m_axis_rx_tuser_dst(arx_tuser_dst[16*p +: 16]),
        .m_axis_rx_tready(arx_tready[p]),
        .mon_tx_end_valid(mon_tx_end_valid[p]), .mon_tx_end_reason(mon_tx_end_reason[4*p +: 4]),
        .cmac_clk(cmac_clk[p]), .cmac_rstn(adapter_cmac_rstn), .cmac_pwr_rstn(cmac_pwr_rstn[p]),
        .live_o(adapter_live),
        .m_axis_tx_tvalid(btx_tvalid[p]), .m_axis_tx_tdata(btx_tdata[512*p +: 512]), .m_axis_tx_tkeep(btx_tkeep[64*p +: 64]),
        .m_axis_tx_tlast(btx_tlast[p]), .m_axis_tx_tuser_err(btx_tuser_err[p]), .m_axis_tx_tready(btx_tready[p]),
        .s_axis_rx_tvalid(brx_tvalid[p]), .s_axis_rx_tdata(brx_tdata[512*p +: 512]), .s_axis_rx_tkeep(brx_tkeep[64*p +: 64]),
        .s_axis_rx_tlast(brx_tlast[p]), .s_axis_rx_tuser_err(brx_tuser_err[p]),
        .rx_disabled_i(rx_disabled), .rx_wire_i(rx_wire), .tx_wire_i(tx_wire),
        .rx_room_beats(rx_room_beats[16*p +: 16]),
        .mon_rx_end_valid(mon_rx_end_valid[p]), .mon_rx_end_reason(mon_rx_end_reason[4*p +: 4])
      );
    end
  end
endmodule
`default_nettype wire
