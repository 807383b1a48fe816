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

  // Streams: clock, and the block's reset (synchronous to axis_aclk, active low)
  input  wire                         axis_aclk,
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
endmodule
`default_nettype wire
