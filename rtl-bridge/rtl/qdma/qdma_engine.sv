// The QDMA of the card: registers in front, host memory on one side, the shell's streams on the other.
//
//   reg port ─► qdma_registers ─ contexts, doorbells, settings ─► all
//
//   host memory                                                                                       shell
//   hp_desc ◄─ qdma_read_arbiter ◄─ qdma_desc_engine (C2H), qdma_desc_engine (H2C)
//   hp_data ◄────────────────────── qdma_h2c_engine ────────────────────────────► m_axis_h2c
//   hp_pay  ◄────────────────────── qdma_c2h_write ◄───────────────────────────── s_axis_c2h
//   hp_cmp  ◄─ qdma_write_arbiter ◄─ qdma_completion ◄─────────────────────────── s_axis_cpl
//                                 ◄─ qdma_h2c_engine (status words)
//   irq     ◄─ qdma_msix ◄─ interrupts, behind their status words; error interrupt
//
// EQDMA (QDMA 4.0) dialect, streams only, internal descriptor mode, direct MSI-X. Left out: bypass, memory-mapped queues,
// SR-IOV, interrupt aggregation, markers, virtio, PASID, CRC; and dropping C2H frames for want of descriptors (qdma.md 7.5):
// they wait.
//
// Host port: four channels, 64 bytes and one beat a cycle each, valid/ready; answers to reads have no ready, as room is kept
// before a read is sent. Answers of one tag come together and in order, of different tags in any order. A write is done
// when it is taken; the host's side keeps the order over all channels. Each output is a function of registers only.
// Order kept here: payload is taken before its completion is offered, a completion before its status word, a status word
// before its interrupt. After a context command has ended (IND_CTXT_CMD.BUSY 0) the queue's DMA is over.
//
// Throughput: 1 frame of one beat or 1 beat a cycle in each direction, if the host's latency is covered by what cfg_* allow.
//
// Source: qdma.md sections 1 to 8.
`include "onic_assert.svh"
`default_nettype none
module qdma_engine
  import qdma_pkg::*;
#(
  parameter int unsigned NUM_QUEUE     = 512,          // power of two, 2 to 2048
  parameter int unsigned NUM_PHYS_FUNC = 1,            // PCIe functions, 1 to 4
  parameter int unsigned C2H_AHEAD_MAX = 256,          // descriptors kept for a C2H queue, a power of two, 32 to 256
  parameter int unsigned H2C_AHEAD_MAX = 256           // the same for H2C
) (
  input  wire          clk,                            // axis_aclk, 250 MHz
  input  wire          rstn,                           // synchronous, active low, power-up only

  // How far to read ahead, quasi static
  input  wire    [8:0] cfg_c2h_ahead,                  // descriptors for a queue, 1 to C2H_AHEAD_MAX
  input  wire    [8:0] cfg_h2c_ahead,                  // the same, 1 to H2C_AHEAD_MAX
  input  wire    [5:0] cfg_fetches,                    // descriptor reads in flight for one queue, 1 to 32
  input  wire   [12:0] cfg_fetch_bytes,                // longest descriptor read, 64 to 4096, a multiple of 64
  input  wire   [12:0] cfg_read_bytes,                 // longest data read, 64 to 4096, a multiple of 64
  input  wire    [8:0] cfg_data_reads,                 // data reads in flight, 1 to 256

  // Register port (BAR0): an access at a time, in order
  input  wire          reg_valid_i,
  output logic         reg_ready_o,
  input  wire          reg_write_i,
  input  wire    [7:0] reg_func_i,
  input  wire   [17:0] reg_addr_i,
  input  wire   [31:0] reg_wdata_i,
  output logic         reg_rvalid_o,
  output logic  [31:0] reg_rdata_o,

  // Interrupts: a vector of a function's MSI-X table
  output logic         irq_valid_o,
  output logic   [7:0] irq_func_o,
  output logic  [10:0] irq_vector_o,
  input  wire          irq_ready_i,

  // Host port: descriptor reads
  output logic         hp_desc_req_valid_o,
  input  wire          hp_desc_req_ready_i,
  output logic   [7:0] hp_desc_req_func_o,
  output logic  [63:0] hp_desc_req_addr_o,
  output logic  [12:0] hp_desc_req_len_o,
  output logic   [7:0] hp_desc_req_tag_o,
  input  wire          hp_desc_rsp_valid_i,
  input  wire    [7:0] hp_desc_rsp_tag_i,
  input  wire  [511:0] hp_desc_rsp_data_i,
  input  wire          hp_desc_rsp_last_i,
  input  wire    [1:0] hp_desc_rsp_status_i,

  // Host port: data reads
  output logic         hp_data_req_valid_o,
  input  wire          hp_data_req_ready_i,
  output logic   [7:0] hp_data_req_func_o,
  output logic  [63:0] hp_data_req_addr_o,
  output logic  [12:0] hp_data_req_len_o,
  output logic   [7:0] hp_data_req_tag_o,
  input  wire          hp_data_rsp_valid_i,
  input  wire    [7:0] hp_data_rsp_tag_i,
  input  wire  [511:0] hp_data_rsp_data_i,
  input  wire          hp_data_rsp_last_i,
  input  wire    [1:0] hp_data_rsp_status_i,

  // Host port: payload writes
  output logic         hp_pay_valid_o,
  input  wire          hp_pay_ready_i,
  output logic   [7:0] hp_pay_func_o,
  output logic  [63:0] hp_pay_addr_o,
  output logic [511:0] hp_pay_data_o,
  output logic  [63:0] hp_pay_be_o,
  output logic         hp_pay_last_o,

  // Host port: completions and status words
  output logic         hp_cmp_valid_o,
  input  wire          hp_cmp_ready_i,
  output logic   [7:0] hp_cmp_func_o,
  output logic  [63:0] hp_cmp_addr_o,
  output logic [511:0] hp_cmp_data_o,
  output logic  [63:0] hp_cmp_be_o,
  output logic         hp_cmp_last_o,

  // Host to card
  output logic         m_axis_h2c_tvalid,
  output logic         m_axis_h2c_tlast,
  output logic [511:0] m_axis_h2c_tdata,
  output logic  [31:0] m_axis_h2c_tcrc,                // 0: left out
  output logic  [10:0] m_axis_h2c_tuser_qid,
  output logic   [2:0] m_axis_h2c_tuser_port_id,
  output logic         m_axis_h2c_tuser_err,
  output logic  [31:0] m_axis_h2c_tuser_mdata,
  output logic   [5:0] m_axis_h2c_tuser_mty,
  output logic         m_axis_h2c_tuser_zero_byte,
  input  wire          m_axis_h2c_tready,

  // Card to host, data
  input  wire          s_axis_c2h_tvalid,
  input  wire          s_axis_c2h_tlast,
  input  wire  [511:0] s_axis_c2h_tdata,
  input  wire   [31:0] s_axis_c2h_tcrc,                // not looked at, nor are marker, port_id, ecc, has_cmpt
  input  wire          s_axis_c2h_ctrl_marker,
  input  wire    [2:0] s_axis_c2h_ctrl_port_id,
  input  wire    [6:0] s_axis_c2h_ctrl_ecc,
  input  wire   [15:0] s_axis_c2h_ctrl_len,
  input  wire   [10:0] s_axis_c2h_ctrl_qid,
  input  wire          s_axis_c2h_ctrl_has_cmpt,
  input  wire    [5:0] s_axis_c2h_mty,
  output logic         s_axis_c2h_tready,

  // Card to host, completions
  input  wire          s_axis_cpl_tvalid,
  input  wire  [511:0] s_axis_cpl_tdata,
  input  wire    [1:0] s_axis_cpl_size,
  input  wire   [15:0] s_axis_cpl_dpar,
  input  wire   [10:0] s_axis_cpl_ctrl_qid,
  input  wire    [1:0] s_axis_cpl_ctrl_cmpt_type,
  input  wire   [15:0] s_axis_cpl_ctrl_wait_pld_pkt_id,
  input  wire    [2:0] s_axis_cpl_ctrl_port_id,
  input  wire          s_axis_cpl_ctrl_marker,
  input  wire          s_axis_cpl_ctrl_user_trig,
  input  wire    [2:0] s_axis_cpl_ctrl_col_idx,
  input  wire    [2:0] s_axis_cpl_ctrl_err_idx,
  input  wire          s_axis_cpl_ctrl_no_wrb_marker,
  output logic         s_axis_cpl_tready,

  // Monitors, one cycle each: a completion became a ring entry, with the error bit or without; one did not, and why
  // (qdma_pkg::drop_e); an H2C descriptor was refused, so that no frame comes of it
  output logic         mon_cmpt_entry_valid,
  output logic         mon_cmpt_entry_err,
  output logic         mon_cmpt_drop_valid,
  output logic   [3:0] mon_cmpt_drop_reason,
  output logic         mon_h2c_drop_qdma_valid,

  // 1: nothing is under way inside and no timer runs, so that nothing happens until an input asks for it
  output logic         qdma_idle_o
);
  `ONIC_ASSERT_PARAM(NUM_QUEUE, NUM_QUEUE >= 2 && NUM_QUEUE <= 2048 && (NUM_QUEUE & (NUM_QUEUE - 1)) == 0,
                     "NUM_QUEUE must be a power of two from 2 to 2048")
  `ONIC_ASSERT_PARAM(NUM_PHYS_FUNC, NUM_PHYS_FUNC >= 1 && NUM_PHYS_FUNC <= 4, "NUM_PHYS_FUNC must be 1 to 4")
  `ONIC_ASSERT_PARAM(C2H_AHEAD_MAX,
                     C2H_AHEAD_MAX >= 32 && C2H_AHEAD_MAX <= 256 && (C2H_AHEAD_MAX & (C2H_AHEAD_MAX - 1)) == 0,
                     "C2H_AHEAD_MAX must be a power of two from 32 to 256")
  `ONIC_ASSERT_PARAM(H2C_AHEAD_MAX,
                     H2C_AHEAD_MAX >= 32 && H2C_AHEAD_MAX <= 256 && (H2C_AHEAD_MAX & (H2C_AHEAD_MAX - 1)) == 0,
                     "H2C_AHEAD_MAX must be a power of two from 32 to 256")

  // ---- Idle. What an input brings in this cycle counts too, since the parts show it a cycle later. ----
  logic registers_idle, c2h_desc_idle, h2c_desc_idle, c2h_idle, completion_idle, vectors_idle, h2c_idle;
  wire  input_event = reg_valid_i || s_axis_c2h_tvalid || s_axis_cpl_tvalid || hp_desc_rsp_valid_i || hp_data_rsp_valid_i;
  wire  parts_idle  = registers_idle && c2h_desc_idle && h2c_desc_idle && c2h_idle && completion_idle && vectors_idle
                      && h2c_idle && !hp_desc_req_valid_o && !hp_cmp_valid_o;

  always_ff @(posedge clk) qdma_idle_o <= rstn && parts_idle && !input_event;

  // ---- How far to read ahead. Registered: pins that decide something make a simulator go through all that follows from
  // it whenever any pin changes, and these never do. ----
  logic  [8:0] c2h_ahead_q, h2c_ahead_q, data_reads_q;
  logic  [5:0] fetches_q;
  logic [12:0] fetch_bytes_q, read_bytes_q;

  always_ff @(posedge clk) begin
    c2h_ahead_q   <= cfg_c2h_ahead;
    h2c_ahead_q   <= cfg_h2c_ahead;
    fetches_q     <= cfg_fetches;
    fetch_bytes_q <= cfg_fetch_bytes;
    read_bytes_q  <= cfg_read_bytes;
    data_reads_q  <= cfg_data_reads;
  end

  // ---- Registers ----
  // Sources of faults, in the order in which a log prefers them
  localparam int unsigned FaultH2cDesc = 0, FaultC2hDesc = 1, FaultC2h = 2, FaultJoin = 3, FaultCompletion = 4, FaultH2c = 5,
                          FaultVector = 6, Sources = 7;
  // Owners of contexts, as on the context bus
  localparam int unsigned CtxtC2hDesc = 0, CtxtH2cDesc = 1, CtxtCompletion = 2, CtxtPrefetch = 3;
  // Engines with doorbells
  localparam int unsigned BellH2c = 0, BellC2h = 1, BellCompletion = 2;

  config_t          settings;
  context_command_t ctxt;
  logic       [3:0] ctxt_valid, ctxt_done;
  logic [3:0][255:0] ctxt_rdata;
  doorbell_t        bell;
  logic       [2:0] bell_valid, bell_ready;
  qid_t             cidx_qid;
  index_t           cidx;
  fault_t           fault [Sources];
  logic             fence, flush, flush_busy, error_irq_valid, error_irq_ready;
  logic             c2h_desc_busy, h2c_desc_busy, c2h_busy, completion_busy, h2c_busy;
  logic      [11:0] error_irq_func;
  logic      [10:0] error_irq_vector;
  drop_e            completion_why;
  logic             completion_in, completion_out, completion_error, completion_dropped, status_out;

  qdma_registers #(.NumQueue(NUM_QUEUE), .NumFunc(NUM_PHYS_FUNC), .Sources(Sources)) u_registers (
    .clk, .rstn, .reg_valid_i, .reg_ready_o, .reg_write_i, .reg_func_i, .reg_addr_i, .reg_wdata_i, .reg_rvalid_o, .reg_rdata_o,
    .config_o(settings), .ctxt_o(ctxt), .ctxt_valid_o(ctxt_valid), .ctxt_done_i(ctxt_done), .ctxt_rdata_i(ctxt_rdata),
    .fence_o(fence), .fence_busy_i(c2h_desc_busy || h2c_desc_busy || c2h_busy || completion_busy || h2c_busy),
    .flush_o(flush), .flush_busy_i(flush_busy),
    .bell_o(bell), .bell_valid_o(bell_valid), .bell_ready_i(bell_ready), .cidx_qid_o(cidx_qid), .cidx_i(cidx),
    .fault_i(fault), .error_irq_valid_o(error_irq_valid), .error_irq_func_o(error_irq_func),
    .error_irq_vector_o(error_irq_vector), .error_irq_ready_i(error_irq_ready),
    .count_completion_in_i(completion_in), .count_completion_out_i(completion_out),
    .count_completion_dropped_i(completion_dropped), .count_status_out_i(status_out), .idle_o(registers_idle)
  );

  // ---- Descriptors ----
  logic        [1:0] desc_rd_valid, desc_rd_ready;     // 0 C2H, 1 H2C
  read_req_t   [1:0] desc_rd;
  read_rsp_t         desc_rsp [2];
  qid_t              pfch_qid, demand_qid, c2h_look_qid, c2h_look2_qid, c2h_pop_qid, c2h_news_qid;
  logic              pfch_may, pfch_en, demand_valid, c2h_pop_valid, c2h_news_valid;
  logic        [5:0] demand_count;
  desc_queue_t       c2h_look, c2h_look2;
  logic              c2h_stop_ready;
  qid_t              h2c_pfch_qid;
  wire unused_desc = ^{c2h_stop_ready, h2c_pfch_qid};

  qdma_desc_engine #(.NumQueue(NUM_QUEUE), .DescBytes(8), .AheadMax(C2H_AHEAD_MAX), .H2c(1'b0)) u_c2h_desc (
    .clk, .rstn, .config_i(settings), .ahead_i(c2h_ahead_q), .fetches_i(fetches_q), .fetch_bytes_i(fetch_bytes_q),
    .ctxt_valid_i(ctxt_valid[CtxtC2hDesc]), .ctxt_i(ctxt), .ctxt_done_o(ctxt_done[CtxtC2hDesc]),
    .ctxt_rdata_o(ctxt_rdata[CtxtC2hDesc]),
    .bell_valid_i(bell_valid[BellC2h]), .bell_i(bell), .bell_ready_o(bell_ready[BellC2h]),
    .fence_i(fence), .fence_busy_o(c2h_desc_busy),
    .rd_valid_o(desc_rd_valid[0]), .rd_o(desc_rd[0]), .rd_ready_i(desc_rd_ready[0]), .rsp_i(desc_rsp[0]),
    .pfch_qid_o(pfch_qid), .pfch_may_i(pfch_may), .pfch_en_i(pfch_en), .pfch_new_i(ctxt_done[CtxtPrefetch]),
    .pfch_new_qid_i(ctxt.qid),
    .demand_valid_i(demand_valid), .demand_qid_i(demand_qid), .demand_count_i(demand_count),
    .look_qid_i(c2h_look_qid), .look_o(c2h_look), .look2_qid_i(c2h_look2_qid), .look2_o(c2h_look2),
    .pop_valid_i(c2h_pop_valid), .pop_qid_i(c2h_pop_qid), .done_valid_i(1'b0), .done_qid_i('0), .done_cidx_i('0),
    .done_generation_i('0),
    .stop_valid_i(1'b0), .stop_qid_i('0), .stop_err_i('0), .stop_ready_o(c2h_stop_ready),
    .news_valid_o(c2h_news_valid), .news_qid_o(c2h_news_qid), .irq_disarm_valid_i(1'b0), .irq_disarm_qid_i('0),
    .err_sent_valid_i(1'b0), .err_sent_qid_i('0),
    .fault_o(fault[FaultC2hDesc]), .idle_o(c2h_desc_idle)
  );

  qid_t        h2c_look_qid, h2c_look2_qid, h2c_pop_qid, h2c_done_qid, h2c_stop_qid, h2c_news_qid, h2c_disarm_qid;
  qid_t        h2c_sent_qid;
  logic        h2c_pop_valid, h2c_done_valid, h2c_stop_valid, h2c_stop_ready, h2c_news_valid, h2c_disarm_valid;
  logic        h2c_sent_valid;
  index_t      h2c_done_cidx;
  generation_t h2c_done_generation;
  logic  [1:0] h2c_stop_err;
  desc_queue_t h2c_look, h2c_look2;

  qdma_desc_engine #(.NumQueue(NUM_QUEUE), .DescBytes(16), .AheadMax(H2C_AHEAD_MAX), .H2c(1'b1)) u_h2c_desc (
    .clk, .rstn, .config_i(settings), .ahead_i(h2c_ahead_q), .fetches_i(fetches_q), .fetch_bytes_i(fetch_bytes_q),
    .ctxt_valid_i(ctxt_valid[CtxtH2cDesc]), .ctxt_i(ctxt), .ctxt_done_o(ctxt_done[CtxtH2cDesc]),
    .ctxt_rdata_o(ctxt_rdata[CtxtH2cDesc]),
    .bell_valid_i(bell_valid[BellH2c]), .bell_i(bell), .bell_ready_o(bell_ready[BellH2c]),
    .fence_i(fence), .fence_busy_o(h2c_desc_busy),
    .rd_valid_o(desc_rd_valid[1]), .rd_o(desc_rd[1]), .rd_ready_i(desc_rd_ready[1]), .rsp_i(desc_rsp[1]),
    .pfch_qid_o(h2c_pfch_qid), .pfch_may_i(1'b1), .pfch_en_i(1'b1), .pfch_new_i(1'b0), .pfch_new_qid_i('0),
    .demand_valid_i(1'b0), .demand_qid_i('0), .demand_count_i('0),
    .look_qid_i(h2c_look_qid), .look_o(h2c_look), .look2_qid_i(h2c_look2_qid), .look2_o(h2c_look2),
    .pop_valid_i(h2c_pop_valid), .pop_qid_i(h2c_pop_qid), .done_valid_i(h2c_done_valid), .done_qid_i(h2c_done_qid),
    .done_cidx_i(h2c_done_cidx), .done_generation_i(h2c_done_generation), .stop_valid_i(h2c_stop_valid), .stop_qid_i(h2c_stop_qid), .stop_err_i(h2c_stop_err),
    .stop_ready_o(h2c_stop_ready), .news_valid_o(h2c_news_valid), .news_qid_o(h2c_news_qid),
    .irq_disarm_valid_i(h2c_disarm_valid), .irq_disarm_qid_i(h2c_disarm_qid), .err_sent_valid_i(h2c_sent_valid),
    .err_sent_qid_i(h2c_sent_qid), .fault_o(fault[FaultH2cDesc]),
    .idle_o(h2c_desc_idle)
  );

  read_req_t desc_req;
  qdma_read_arbiter u_desc_reads (
    .clk, .rstn, .rd_valid_i(desc_rd_valid), .rd_i(desc_rd), .rd_ready_o(desc_rd_ready), .rsp_o(desc_rsp),
    .req_valid_o(hp_desc_req_valid_o), .req_o(desc_req), .req_ready_i(hp_desc_req_ready_i),
    .rsp_valid_i(hp_desc_rsp_valid_i), .rsp_tag_i(hp_desc_rsp_tag_i), .rsp_data_i(hp_desc_rsp_data_i),
    .rsp_last_i(hp_desc_rsp_last_i), .rsp_status_i(hp_desc_rsp_status_i)
  );
  assign {hp_desc_req_func_o, hp_desc_req_addr_o, hp_desc_req_len_o, hp_desc_req_tag_o} = desc_req;

  // ---- Card to host ----
  write_t      pay;
  logic        frame_done_valid, frame_done_ready;
  frame_done_t frame_done;

  qdma_c2h_write #(.NumQueue(NUM_QUEUE)) u_c2h (
    .clk, .rstn, .config_i(settings), .ctxt_valid_i(ctxt_valid[CtxtPrefetch]), .ctxt_i(ctxt),
    .ctxt_done_o(ctxt_done[CtxtPrefetch]), .ctxt_rdata_o(ctxt_rdata[CtxtPrefetch]), .fence_i(fence), .fence_busy_o(c2h_busy),
    .s_axis_c2h_tvalid, .s_axis_c2h_tlast, .s_axis_c2h_tdata, .s_axis_c2h_ctrl_len, .s_axis_c2h_ctrl_qid, .s_axis_c2h_mty,
    .s_axis_c2h_tready, .pfch_qid_i(pfch_qid), .pfch_may_o(pfch_may), .pfch_en_o(pfch_en), .demand_valid_o(demand_valid),
    .demand_qid_o(demand_qid), .demand_count_o(demand_count), .look_qid_o(c2h_look_qid), .look_i(c2h_look), .look2_qid_o(c2h_look2_qid),
    .look2_i(c2h_look2), .pop_valid_o(c2h_pop_valid), .pop_qid_o(c2h_pop_qid),
    .news_valid_i(c2h_news_valid), .news_qid_i(c2h_news_qid),
    .pay_valid_o(hp_pay_valid_o), .pay_o(pay), .pay_ready_i(hp_pay_ready_i),
    .frame_done_valid_o(frame_done_valid), .frame_done_o(frame_done), .frame_done_ready_i(frame_done_ready),
    .fault_o(fault[FaultC2h]), .idle_o(c2h_idle)
  );
  assign {hp_pay_func_o, hp_pay_addr_o, hp_pay_data_o, hp_pay_be_o, hp_pay_last_o} = pay;
  wire unused_c2h = ^{s_axis_c2h_tcrc, s_axis_c2h_ctrl_marker, s_axis_c2h_ctrl_port_id, s_axis_c2h_ctrl_ecc,
                      s_axis_c2h_ctrl_has_cmpt};

  // ---- Completions and status words. Writers: 0 completion, 1 H2C. ----
  logic       [1:0] wr_valid, wr_ready, irq_in_valid, irq_in_ready, irq_valid, irq_ready;
  write_t           wr [2];
  write_t           cmp;
  interrupt_t [1:0] irq;

  qdma_completion #(.NumQueue(NUM_QUEUE)) u_completion (
    .clk, .rstn, .config_i(settings), .ctxt_valid_i(ctxt_valid[CtxtCompletion]), .ctxt_i(ctxt),
    .ctxt_done_o(ctxt_done[CtxtCompletion]), .ctxt_rdata_o(ctxt_rdata[CtxtCompletion]),
    .fence_i(fence), .fence_busy_o(completion_busy),
    .bell_valid_i(bell_valid[BellCompletion]), .bell_i(bell), .bell_ready_o(bell_ready[BellCompletion]),
    .cidx_qid_i(cidx_qid), .cidx_o(cidx),
    .s_axis_cpl_tvalid, .s_axis_cpl_tdata, .s_axis_cpl_size, .s_axis_cpl_dpar, .s_axis_cpl_ctrl_qid,
    .s_axis_cpl_ctrl_cmpt_type, .s_axis_cpl_ctrl_wait_pld_pkt_id, .s_axis_cpl_ctrl_port_id, .s_axis_cpl_ctrl_marker,
    .s_axis_cpl_ctrl_user_trig, .s_axis_cpl_ctrl_col_idx, .s_axis_cpl_ctrl_err_idx, .s_axis_cpl_ctrl_no_wrb_marker,
    .s_axis_cpl_tready, .frame_done_valid_i(frame_done_valid), .frame_done_i(frame_done),
    .frame_done_ready_o(frame_done_ready), .cmp_valid_o(wr_valid[0]), .cmp_o(wr[0]), .cmp_ready_i(wr_ready[0]),
    .irq_valid_o(irq_in_valid[0]), .irq_o(irq[0]), .irq_ready_i(irq_in_ready[0]),
    .fault_o(fault[FaultCompletion]), .join_fault_o(fault[FaultJoin]), .completion_in_o(completion_in),
    .completion_out_o(completion_out), .completion_error_o(completion_error), .completion_dropped_o(completion_dropped),
    .completion_why_o(completion_why),
    .status_out_o(status_out), .idle_o(completion_idle)
  );

  qdma_write_arbiter u_completion_writes (
    .clk, .rstn, .wr_valid_i(wr_valid), .wr_i(wr), .wr_ready_o(wr_ready), .wr_valid_o(hp_cmp_valid_o), .wr_o(cmp),
    .wr_ready_i(hp_cmp_ready_i), .irq_valid_i(irq_in_valid), .irq_ready_o(irq_in_ready), .irq_valid_o(irq_valid),
    .irq_ready_i(irq_ready), .flush_i(flush), .flush_busy_o(flush_busy)
  );
  assign {hp_cmp_func_o, hp_cmp_addr_o, hp_cmp_data_o, hp_cmp_be_o, hp_cmp_last_o} = cmp;

  qdma_msix #(.NumFunc(NUM_PHYS_FUNC)) u_msix (
    .clk, .rstn, .irq_valid_i(irq_valid), .irq_i(irq), .irq_ready_o(irq_ready), .error_valid_i(error_irq_valid),
    .error_func_i(error_irq_func), .error_vector_i(error_irq_vector), .error_ready_o(error_irq_ready),
    .irq_valid_o, .irq_func_o, .irq_vector_o, .irq_ready_i, .fault_o(fault[FaultVector]), .idle_o(vectors_idle)
  );

  // ---- Host to card ----
  read_req_t data_req;
  read_rsp_t data_rsp_q;

  always_ff @(posedge clk) begin
    if (rstn && hp_data_rsp_valid_i) begin
      data_rsp_q <= '{valid: 1'b1, tag: hp_data_rsp_tag_i, data: hp_data_rsp_data_i, last: hp_data_rsp_last_i,
                      status: read_status_e'(hp_data_rsp_status_i)};
    end else begin
      data_rsp_q.valid <= 1'b0;
    end
  end

  qdma_h2c_engine #(.NumQueue(NUM_QUEUE)) u_h2c (
    .clk, .rstn, .wb_interval_i(settings.wb_interval), .read_bytes_i(read_bytes_q), .data_reads_i(data_reads_q),
    .fence_i(fence), .fence_busy_o(h2c_busy), .news_valid_i(h2c_news_valid), .news_qid_i(h2c_news_qid),
    .look_qid_o(h2c_look_qid), .look_i(h2c_look), .look2_qid_o(h2c_look2_qid), .look2_i(h2c_look2),
    .pop_valid_o(h2c_pop_valid), .pop_qid_o(h2c_pop_qid), .done_valid_o(h2c_done_valid), .done_qid_o(h2c_done_qid),
    .done_cidx_o(h2c_done_cidx), .done_generation_o(h2c_done_generation), .stop_valid_o(h2c_stop_valid), .stop_qid_o(h2c_stop_qid), .stop_err_o(h2c_stop_err),
    .stop_ready_i(h2c_stop_ready), .irq_disarm_valid_o(h2c_disarm_valid), .irq_disarm_qid_o(h2c_disarm_qid),
    .err_sent_valid_o(h2c_sent_valid), .err_sent_qid_o(h2c_sent_qid),
    .rd_valid_o(hp_data_req_valid_o), .rd_o(data_req), .rd_ready_i(hp_data_req_ready_i), .rsp_i(data_rsp_q),
    .m_axis_h2c_tvalid, .m_axis_h2c_tlast, .m_axis_h2c_tdata, .m_axis_h2c_tcrc, .m_axis_h2c_tuser_qid,
    .m_axis_h2c_tuser_port_id, .m_axis_h2c_tuser_err, .m_axis_h2c_tuser_mdata, .m_axis_h2c_tuser_mty,
    .m_axis_h2c_tuser_zero_byte, .m_axis_h2c_tready, .cmp_valid_o(wr_valid[1]), .cmp_o(wr[1]), .cmp_ready_i(wr_ready[1]),
    .irq_valid_o(irq_in_valid[1]), .irq_o(irq[1]), .irq_ready_i(irq_in_ready[1]), .fault_o(fault[FaultH2c]),
    .idle_o(h2c_idle)
  );
  assign {hp_data_req_func_o, hp_data_req_addr_o, hp_data_req_len_o, hp_data_req_tag_o} = data_req;

  // ---- Monitors ----
  always_ff @(posedge clk) begin
    mon_cmpt_entry_valid    <= rstn && completion_out;
    mon_cmpt_entry_err      <= completion_error;
    mon_cmpt_drop_valid     <= rstn && completion_dropped;
    mon_h2c_drop_qdma_valid <= rstn && fault[FaultH2c].kind == FaultZeroLength;
    mon_cmpt_drop_reason    <= completion_why;
  end

  // ---- Rules of use. Payload and data reads are watched where their registers are. ----
  `ONIC_ASSERT_STABLE(HostDescStable_A, clk, rstn, hp_desc_req_valid_o, hp_desc_req_ready_i, desc_req, $bits(read_req_t),
                      "a descriptor read changed while it waited")
  `ONIC_ASSERT_STABLE(HostCmpStable_A, clk, rstn, hp_cmp_valid_o, hp_cmp_ready_i,
                      {hp_cmp_func_o, hp_cmp_addr_o, hp_cmp_be_o, hp_cmp_last_o}, 137,
                      "a completion write changed while it waited")
  `ONIC_ASSERT_STABLE(IrqStable_A, clk, rstn, irq_valid_o, irq_ready_i, {irq_func_o, irq_vector_o}, 19,
                      "an interrupt changed while it waited")
endmodule
`default_nettype wire
