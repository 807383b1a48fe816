// An OpenNIC card: the QDMA engine and the shell in one top, joined at the QDMA's streams.
//
//   host memory ◄─ hp_* ─► qdma_engine ─── H2C ──► onic_shell ─── m_axis_cmac_tx ──► wire
//   BAR0 ─ reg_* ─────────►            ◄── C2H ───            ◄── s_axis_cmac_rx ───
//   BAR2 ─ s_axil_sim_* ──────────────────────────►
//
// Ports have the names and the meaning that they have at qdma_engine and onic_shell. The engine runs on axis_aclk and is
// reset by powerup_rstn alone, never by a shell reset. Its register port answers about 20 axis_aclk cycles after
// powerup_rstn has risen; it may be used before the shell's modules have left their resets. Every output is a function of
// registers only.
//
// Monitors of the streams between both, axis_aclk, one cycle late, each valid for one cycle:
//   mon_c2h_beat  a C2H beat was taken: is it its frame's last, queue, bytes of the frame (ctrl_len)
//   mon_cpl       a completion was taken: queue, bytes of the frame, packet id
//   mon_h2c_beat  an H2C beat was taken: is it its frame's last, queue, bytes of the frame (from the metadata)
// and, of the engine (see there), mon_cmpt_entry, mon_cmpt_drop, mon_h2c_drop_qdma.
//
// Planted faults (ONIC_FAULTS, +onic_fault=N): 1 to 6 are the shell's, see there; in the engine
//   11 desc engine, completion          an index wraps at N in place of N-1
//   12 completion                       the color is not flipped at the wrap
//   13 completion, H2C writeback        the status word is in slot N-2
//   14 completion                       no second look at a CIDX doorbell
//   15 desc engine                      room for a descriptor is lost now and then
//   16 doorbells                        the relative queue is taken as the absolute one
//   17 each part of a fence             it ends at once, and a stopped queue's DMA comes late
//   18 completion                       does not wait for the payload
//   19 completion                       an arming doorbell that finds the condition true sends no interrupt
//   20 C2H write                        no split at 4 KiB
`default_nettype none
module onic_card #(
  parameter bit [31:0]   BUILD_TIMESTAMP = 32'h0101_0000,
  parameter int unsigned MIN_PKT_LEN     = 64,         // bytes with FCS, 64 to 256
  parameter int unsigned MAX_PKT_LEN     = 1518,       // bytes with FCS, 256 to 9600
  parameter int unsigned USE_PHYS_FUNC   = 1,          // 0 or 1
  parameter int unsigned NUM_PHYS_FUNC   = 1,          // PCIe functions, 1 to 4
  parameter int unsigned NUM_QUEUE       = 512,        // power of two, 2 to 2048
  parameter int unsigned NUM_QDMA        = 1,          // only 1
  parameter int unsigned NUM_CMAC_PORT   = 1,          // Ethernet ports, 1 or 2
  parameter int unsigned C2H_AHEAD_MAX   = 256,        // descriptors kept for a C2H queue, a power of two, 32 to 256
  parameter int unsigned H2C_AHEAD_MAX   = 256         // the same for H2C
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

  // How far to read ahead, quasi static
  input  wire                   [8:0] cfg_c2h_ahead,           // descriptors for a queue, 1 to C2H_AHEAD_MAX
  input  wire                   [8:0] cfg_h2c_ahead,           // the same, 1 to H2C_AHEAD_MAX
  input  wire                   [5:0] cfg_fetches,             // descriptor reads in flight for one queue, 1 to 32
  input  wire                  [12:0] cfg_fetch_bytes,         // longest descriptor read, 64 to 4096, a multiple of 64
  input  wire                  [12:0] cfg_read_bytes,          // longest data read, 64 to 4096, a multiple of 64
  input  wire                   [8:0] cfg_data_reads,          // data reads in flight, 1 to 256

  // Register port (BAR0): an access at a time, in order
  input  wire                         reg_valid_i,
  output logic                        reg_ready_o,
  input  wire                         reg_write_i,
  input  wire                   [7:0] reg_func_i,
  input  wire                  [17:0] reg_addr_i,
  input  wire                  [31:0] reg_wdata_i,
  output logic                        reg_rvalid_o,
  output logic                 [31:0] reg_rdata_o,

  // Interrupts: a vector of a function's MSI-X table
  output logic                        irq_valid_o,
  output logic                  [7:0] irq_func_o,
  output logic                 [10:0] irq_vector_o,
  input  wire                         irq_ready_i,

  // Host port: descriptor reads
  output logic                        hp_desc_req_valid_o,
  input  wire                         hp_desc_req_ready_i,
  output logic                  [7:0] hp_desc_req_func_o,
  output logic                 [63:0] hp_desc_req_addr_o,
  output logic                 [12:0] hp_desc_req_len_o,
  output logic                  [7:0] hp_desc_req_tag_o,
  input  wire                         hp_desc_rsp_valid_i,
  input  wire                   [7:0] hp_desc_rsp_tag_i,
  input  wire                 [511:0] hp_desc_rsp_data_i,
  input  wire                         hp_desc_rsp_last_i,
  input  wire                   [1:0] hp_desc_rsp_status_i,

  // Host port: data reads
  output logic                        hp_data_req_valid_o,
  input  wire                         hp_data_req_ready_i,
  output logic                  [7:0] hp_data_req_func_o,
  output logic                 [63:0] hp_data_req_addr_o,
  output logic                 [12:0] hp_data_req_len_o,
  output logic                  [7:0] hp_data_req_tag_o,
  input  wire                         hp_data_rsp_valid_i,
  input  wire                   [7:0] hp_data_rsp_tag_i,
  input  wire                 [511:0] hp_data_rsp_data_i,
  input  wire                         hp_data_rsp_last_i,
  input  wire                   [1:0] hp_data_rsp_status_i,

  // Host port: payload writes
  output logic                        hp_pay_valid_o,
  input  wire                         hp_pay_ready_i,
  output logic                  [7:0] hp_pay_func_o,
  output logic                 [63:0] hp_pay_addr_o,
  output logic                [511:0] hp_pay_data_o,
  output logic                 [63:0] hp_pay_be_o,
  output logic                        hp_pay_last_o,

  // Host port: completions and status words
  output logic                        hp_cmp_valid_o,
  input  wire                         hp_cmp_ready_i,
  output logic                  [7:0] hp_cmp_func_o,
  output logic                 [63:0] hp_cmp_addr_o,
  output logic                [511:0] hp_cmp_data_o,
  output logic                 [63:0] hp_cmp_be_o,
  output logic                        hp_cmp_last_o,

  // Monitors, one cycle each: a completion became a ring entry, with the error bit or without; one did not, and why (2 its
  // frame was lost or never came, 3 no such queue, 4 ring full); an H2C descriptor was refused, so that no frame comes of it
  output logic                        mon_cmpt_entry_valid,
  output logic                        mon_cmpt_entry_err,
  output logic                        mon_cmpt_drop_valid,
  output logic                  [3:0] mon_cmpt_drop_reason,
  output logic                        mon_h2c_drop_qdma_valid,

  // 1: nothing is under way in the engine and no timer runs there; nothing happens there until an input or the shell asks
  // for it
  output logic                        qdma_idle_o,

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
  output logic                        mon_h2c_drop_valid,

  // Monitors of the streams between engine and shell (axis_aclk)
  output logic                        mon_c2h_beat_valid,
  output logic                        mon_c2h_beat_last,
  output logic                 [10:0] mon_c2h_beat_qid,
  output logic                 [15:0] mon_c2h_beat_len,
  output logic                        mon_cpl_valid,
  output logic                 [10:0] mon_cpl_qid,
  output logic                 [15:0] mon_cpl_len,
  output logic                 [15:0] mon_cpl_pkt_id,
  output logic                        mon_h2c_beat_valid,
  output logic                        mon_h2c_beat_last,
  output logic                 [10:0] mon_h2c_beat_qid,
  output logic                 [15:0] mon_h2c_beat_len
);
  // ---- Reset of the engine: powerup_rstn, stretched as the shell stretches its own, in the engine's clock ----
  logic axil_aresetn, axis_pwr_rstn;
  powerup_reset u_powerup (.clk(axil_aclk), .powerup_rstn_i(|powerup_rstn), .rstn_o(axil_aresetn));
  cdc_reset u_axis_pwr (.dst_clk(axis_aclk), .rstn_i(axil_aresetn), .rstn_o(axis_pwr_rstn));

  // ---- Streams between engine and shell ----
  logic         h2c_tvalid, h2c_tlast, h2c_tuser_err, h2c_tuser_zero_byte, h2c_tready;
  logic [511:0] h2c_tdata;
  logic  [31:0] h2c_tcrc, h2c_tuser_mdata;
  logic  [10:0] h2c_tuser_qid;
  logic   [2:0] h2c_tuser_port_id;
  logic   [5:0] h2c_tuser_mty;
  logic         c2h_tvalid, c2h_tlast, c2h_ctrl_marker, c2h_ctrl_has_cmpt, c2h_tready;
  logic [511:0] c2h_tdata;
  logic  [31:0] c2h_tcrc;
  logic   [2:0] c2h_ctrl_port_id;
  logic   [6:0] c2h_ctrl_ecc;
  logic  [15:0] c2h_ctrl_len;
  logic  [10:0] c2h_ctrl_qid;
  logic   [5:0] c2h_mty;
  logic         cpl_tvalid, cpl_ctrl_marker, cpl_ctrl_user_trig, cpl_ctrl_no_wrb_marker, cpl_tready;
  logic [511:0] cpl_tdata;
  logic   [1:0] cpl_size, cpl_ctrl_cmpt_type;
  logic  [15:0] cpl_dpar, cpl_ctrl_wait_pld_pkt_id;
  logic  [10:0] cpl_ctrl_qid;
  logic   [2:0] cpl_ctrl_port_id, cpl_ctrl_col_idx, cpl_ctrl_err_idx;

  qdma_engine #(
    .NUM_QUEUE(NUM_QUEUE), .NUM_PHYS_FUNC(NUM_PHYS_FUNC), .C2H_AHEAD_MAX(C2H_AHEAD_MAX), .H2C_AHEAD_MAX(H2C_AHEAD_MAX)
  ) u_qdma (
    .clk(axis_aclk), .rstn(axis_pwr_rstn), .cfg_c2h_ahead, .cfg_h2c_ahead, .cfg_fetches, .cfg_fetch_bytes,
    .cfg_read_bytes, .cfg_data_reads, .reg_valid_i, .reg_ready_o, .reg_write_i, .reg_func_i, .reg_addr_i, .reg_wdata_i,
    .reg_rvalid_o, .reg_rdata_o, .irq_valid_o, .irq_func_o, .irq_vector_o, .irq_ready_i, .hp_desc_req_valid_o,
    .hp_desc_req_ready_i, .hp_desc_req_func_o, .hp_desc_req_addr_o, .hp_desc_req_len_o, .hp_desc_req_tag_o,
    .hp_desc_rsp_valid_i, .hp_desc_rsp_tag_i, .hp_desc_rsp_data_i, .hp_desc_rsp_last_i, .hp_desc_rsp_status_i,
    .hp_data_req_valid_o, .hp_data_req_ready_i, .hp_data_req_func_o, .hp_data_req_addr_o, .hp_data_req_len_o,
    .hp_data_req_tag_o, .hp_data_rsp_valid_i, .hp_data_rsp_tag_i, .hp_data_rsp_data_i, .hp_data_rsp_last_i,
    .hp_data_rsp_status_i, .hp_pay_valid_o, .hp_pay_ready_i, .hp_pay_func_o, .hp_pay_addr_o, .hp_pay_data_o,
    .hp_pay_be_o, .hp_pay_last_o, .hp_cmp_valid_o, .hp_cmp_ready_i, .hp_cmp_func_o, .hp_cmp_addr_o, .hp_cmp_data_o,
    .hp_cmp_be_o, .hp_cmp_last_o, .mon_cmpt_entry_valid, .mon_cmpt_entry_err, .mon_cmpt_drop_valid,
    .mon_cmpt_drop_reason, .mon_h2c_drop_qdma_valid, .qdma_idle_o,
    .m_axis_h2c_tvalid(h2c_tvalid), .m_axis_h2c_tlast(h2c_tlast), .m_axis_h2c_tdata(h2c_tdata),
    .m_axis_h2c_tcrc(h2c_tcrc), .m_axis_h2c_tuser_qid(h2c_tuser_qid), .m_axis_h2c_tuser_port_id(h2c_tuser_port_id),
    .m_axis_h2c_tuser_err(h2c_tuser_err), .m_axis_h2c_tuser_mdata(h2c_tuser_mdata), .m_axis_h2c_tuser_mty(h2c_tuser_mty),
    .m_axis_h2c_tuser_zero_byte(h2c_tuser_zero_byte), .m_axis_h2c_tready(h2c_tready), .s_axis_c2h_tvalid(c2h_tvalid),
    .s_axis_c2h_tlast(c2h_tlast), .s_axis_c2h_tdata(c2h_tdata), .s_axis_c2h_tcrc(c2h_tcrc),
    .s_axis_c2h_ctrl_marker(c2h_ctrl_marker), .s_axis_c2h_ctrl_port_id(c2h_ctrl_port_id),
    .s_axis_c2h_ctrl_ecc(c2h_ctrl_ecc), .s_axis_c2h_ctrl_len(c2h_ctrl_len), .s_axis_c2h_ctrl_qid(c2h_ctrl_qid),
    .s_axis_c2h_ctrl_has_cmpt(c2h_ctrl_has_cmpt), .s_axis_c2h_mty(c2h_mty), .s_axis_c2h_tready(c2h_tready),
    .s_axis_cpl_tvalid(cpl_tvalid), .s_axis_cpl_tdata(cpl_tdata), .s_axis_cpl_size(cpl_size), .s_axis_cpl_dpar(cpl_dpar),
    .s_axis_cpl_ctrl_qid(cpl_ctrl_qid), .s_axis_cpl_ctrl_cmpt_type(cpl_ctrl_cmpt_type),
    .s_axis_cpl_ctrl_wait_pld_pkt_id(cpl_ctrl_wait_pld_pkt_id), .s_axis_cpl_ctrl_port_id(cpl_ctrl_port_id),
    .s_axis_cpl_ctrl_marker(cpl_ctrl_marker), .s_axis_cpl_ctrl_user_trig(cpl_ctrl_user_trig),
    .s_axis_cpl_ctrl_col_idx(cpl_ctrl_col_idx), .s_axis_cpl_ctrl_err_idx(cpl_ctrl_err_idx),
    .s_axis_cpl_ctrl_no_wrb_marker(cpl_ctrl_no_wrb_marker), .s_axis_cpl_tready(cpl_tready)
  );

  onic_shell #(
    .BUILD_TIMESTAMP(BUILD_TIMESTAMP), .MIN_PKT_LEN(MIN_PKT_LEN), .MAX_PKT_LEN(MAX_PKT_LEN), .USE_PHYS_FUNC(USE_PHYS_FUNC),
    .NUM_PHYS_FUNC(NUM_PHYS_FUNC), .NUM_QUEUE(NUM_QUEUE), .NUM_QDMA(NUM_QDMA), .NUM_CMAC_PORT(NUM_CMAC_PORT)
  ) u_shell (
    .axil_aclk, .axis_aclk, .cmac_clk, .powerup_rstn, .cfg_min_pkt_len, .cfg_max_pkt_len, .s_axil_sim_awvalid,
    .s_axil_sim_awaddr, .s_axil_sim_awready, .s_axil_sim_wvalid, .s_axil_sim_wdata, .s_axil_sim_wready,
    .s_axil_sim_bvalid, .s_axil_sim_bresp, .s_axil_sim_bready, .s_axil_sim_arvalid, .s_axil_sim_araddr,
    .s_axil_sim_arready, .s_axil_sim_rvalid, .s_axil_sim_rdata, .s_axil_sim_rresp, .s_axil_sim_rready,
    .m_axis_cmac_tx_sim_tvalid, .m_axis_cmac_tx_sim_tdata, .m_axis_cmac_tx_sim_tkeep, .m_axis_cmac_tx_sim_tlast,
    .m_axis_cmac_tx_sim_tuser_err, .m_axis_cmac_tx_sim_tready, .s_axis_cmac_rx_sim_tvalid, .s_axis_cmac_rx_sim_tdata,
    .s_axis_cmac_rx_sim_tkeep, .s_axis_cmac_rx_sim_tlast, .s_axis_cmac_rx_sim_tuser_err, .rx_room_beats,
    .mon_rx_end_valid, .mon_rx_end_reason, .mon_tx_end_valid, .mon_tx_end_reason, .mon_rss_valid, .mon_rss_hash,
    .mon_rss_entry, .mon_rss_drop, .mon_h2c_drop_valid, .s_axis_qdma_h2c_sim_tvalid(h2c_tvalid),
    .s_axis_qdma_h2c_sim_tlast(h2c_tlast), .s_axis_qdma_h2c_sim_tdata(h2c_tdata), .s_axis_qdma_h2c_sim_tcrc(h2c_tcrc),
    .s_axis_qdma_h2c_sim_tuser_qid(h2c_tuser_qid), .s_axis_qdma_h2c_sim_tuser_port_id(h2c_tuser_port_id),
    .s_axis_qdma_h2c_sim_tuser_err(h2c_tuser_err), .s_axis_qdma_h2c_sim_tuser_mdata(h2c_tuser_mdata),
    .s_axis_qdma_h2c_sim_tuser_mty(h2c_tuser_mty), .s_axis_qdma_h2c_sim_tuser_zero_byte(h2c_tuser_zero_byte),
    .s_axis_qdma_h2c_sim_tready(h2c_tready), .m_axis_qdma_c2h_sim_tvalid(c2h_tvalid),
    .m_axis_qdma_c2h_sim_tlast(c2h_tlast), .m_axis_qdma_c2h_sim_tdata(c2h_tdata), .m_axis_qdma_c2h_sim_tcrc(c2h_tcrc),
    .m_axis_qdma_c2h_sim_ctrl_marker(c2h_ctrl_marker), .m_axis_qdma_c2h_sim_ctrl_port_id(c2h_ctrl_port_id),
    .m_axis_qdma_c2h_sim_ctrl_ecc(c2h_ctrl_ecc), .m_axis_qdma_c2h_sim_ctrl_len(c2h_ctrl_len),
    .m_axis_qdma_c2h_sim_ctrl_qid(c2h_ctrl_qid), .m_axis_qdma_c2h_sim_ctrl_has_cmpt(c2h_ctrl_has_cmpt),
    .m_axis_qdma_c2h_sim_mty(c2h_mty), .m_axis_qdma_c2h_sim_tready(c2h_tready), .m_axis_qdma_cpl_sim_tvalid(cpl_tvalid),
    .m_axis_qdma_cpl_sim_tdata(cpl_tdata), .m_axis_qdma_cpl_sim_size(cpl_size), .m_axis_qdma_cpl_sim_dpar(cpl_dpar),
    .m_axis_qdma_cpl_sim_ctrl_qid(cpl_ctrl_qid), .m_axis_qdma_cpl_sim_ctrl_cmpt_type(cpl_ctrl_cmpt_type),
    .m_axis_qdma_cpl_sim_ctrl_wait_pld_pkt_id(cpl_ctrl_wait_pld_pkt_id),
    .m_axis_qdma_cpl_sim_ctrl_port_id(cpl_ctrl_port_id), .m_axis_qdma_cpl_sim_ctrl_marker(cpl_ctrl_marker),
    .m_axis_qdma_cpl_sim_ctrl_user_trig(cpl_ctrl_user_trig), .m_axis_qdma_cpl_sim_ctrl_col_idx(cpl_ctrl_col_idx),
    .m_axis_qdma_cpl_sim_ctrl_err_idx(cpl_ctrl_err_idx), .m_axis_qdma_cpl_sim_ctrl_no_wrb_marker(cpl_ctrl_no_wrb_marker),
    .m_axis_qdma_cpl_sim_tready(cpl_tready)
  );

  // ---- Monitors ----
  wire c2h_taken = c2h_tvalid && c2h_tready;
  wire cpl_taken = cpl_tvalid && cpl_tready;
  wire h2c_taken = h2c_tvalid && h2c_tready;

  always_ff @(posedge axis_aclk) begin
    mon_c2h_beat_valid <= axis_pwr_rstn && c2h_taken;
    mon_cpl_valid      <= axis_pwr_rstn && cpl_taken;
    mon_h2c_beat_valid <= axis_pwr_rstn && h2c_taken;
    if (c2h_taken) begin
      mon_c2h_beat_last <= c2h_tlast;
      mon_c2h_beat_qid  <= c2h_ctrl_qid;
      mon_c2h_beat_len  <= c2h_ctrl_len;
    end
    if (cpl_taken) begin
      mon_cpl_qid    <= cpl_ctrl_qid;
      mon_cpl_len    <= cpl_tdata[47:32];
      mon_cpl_pkt_id <= cpl_tdata[63:48];
    end
    if (h2c_taken) begin
      mon_h2c_beat_last <= h2c_tlast;
      mon_h2c_beat_qid  <= h2c_tuser_qid;
      mon_h2c_beat_len  <= h2c_tuser_mdata[15:0];
    end
  end
endmodule
`default_nettype wire
