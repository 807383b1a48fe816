// H2C path of the QDMA: descriptors to frames on the stream, to completed descriptors, status words and interrupts.
//
//   desc engine ── look, pop ─► qdma_h2c_read ── reads ─► host memory
//                                    │ frames, reads sent       │ answers
//                                    └──────► qdma_h2c_stream ◄─┘ ──► m_axis_h2c
//                                                   │ frame taken by the shell
//   desc engine ◄─ done, stop, irq_disarm ── qdma_h2c_writeback ──► status word, interrupt
//
// One descriptor is one frame. Queues with descriptors take turns by frame. Each frame's place in the reorder buffer is
// kept before its descriptor is popped, so what is committed ends without the shell, software or descriptors.
// Throughput: 1 frame of one beat or 1 beat a cycle, one queue or many, as long as data_reads_i covers the latency; frames
// beyond 32 KiB wait for one another's room. A frame leaves when all its bytes are here, about 6 cycles after the last.
// Back-pressure: honoured on each port. Faults: one a cycle at most.
// Source: qdma.md sections 5.2, 5.5, 7.3 and 8.
`default_nettype none
module qdma_h2c_engine import qdma_pkg::*, qdma_h2c_pkg::*; #(
  parameter int unsigned NumQueue = 512                // 1 to 2048, a power of two
) (
  input  wire          clk,
  input  wire          rstn,                           // synchronous, active low, power-up only
  // Settings
  input  wire    [2:0] wb_interval_i,                  // config_t: a status word every 4 << wb_interval_i frames
  input  wire   [12:0] read_bytes_i,                   // longest read, 64 to 4096, a multiple of 64
  input  wire    [8:0] data_reads_i,                   // reads in flight, 1 to 256
  // Fence
  input  wire          fence_i,                        // pulse
  output logic         fence_busy_o,                   // from the same cycle on, until what was committed before is done
  // Descriptor queues
  input  wire          news_valid_i,
  input  wire qid_t    news_qid_i,
  output qid_t         look_qid_o,
  input  wire desc_queue_t look_i,                     // one cycle after look_qid_o
  output qid_t         look2_qid_o,
  input  wire desc_queue_t look2_i,                    // one cycle after look2_qid_o
  output logic         pop_valid_o,
  output qid_t         pop_qid_o,
  output logic         done_valid_o,
  output qid_t         done_qid_o,
  output index_t       done_cidx_o,
  output generation_t  done_generation_o,
  output logic         stop_valid_o,
  output qid_t         stop_qid_o,
  output logic   [1:0] stop_err_o,
  input  wire          stop_ready_i,
  output logic         irq_disarm_valid_o,
  output qid_t         irq_disarm_qid_o,
  output logic         err_sent_valid_o,
  output qid_t         err_sent_qid_o,
  // Data reads
  output logic         rd_valid_o,
  output read_req_t    rd_o,
  input  wire          rd_ready_i,
  input  wire read_rsp_t rsp_i,
  // Frames out
  output logic         m_axis_h2c_tvalid,
  output logic         m_axis_h2c_tlast,
  output logic [511:0] m_axis_h2c_tdata,
  output logic  [31:0] m_axis_h2c_tcrc,                // 0: left out
  output logic  [10:0] m_axis_h2c_tuser_qid,
  output logic   [2:0] m_axis_h2c_tuser_port_id,       // 0
  output logic         m_axis_h2c_tuser_err,           // on each beat of the frame
  output logic  [31:0] m_axis_h2c_tuser_mdata,
  output logic   [5:0] m_axis_h2c_tuser_mty,           // empty bytes of the last beat; 0 on others
  output logic         m_axis_h2c_tuser_zero_byte,     // 0
  input  wire          m_axis_h2c_tready,
  // Status words
  output logic         cmp_valid_o,
  output write_t       cmp_o,
  input  wire          cmp_ready_i,
  // Interrupts
  output logic         irq_valid_o,
  output interrupt_t   irq_o,
  input  wire          irq_ready_i,
  output fault_t       fault_o,
  output logic         idle_o                          // nothing under way; not before the sweep after reset
);
  logic   frame_valid, issue_valid, start, free_beat, ended, zero_valid, zero_ready, failed_valid, failed_ready;
  logic   end_valid, end_room, stream_busy, writeback_busy;
  logic   read_idle, writeback_idle;
  frame_t frame;
  issue_t issue;
  end_t   zero, ending;
  failed_t failed;

  qdma_h2c_read #(.NumQueue(NumQueue)) u_read (
    .clk, .rstn, .read_bytes_i, .data_reads_i,
    .news_valid_i, .news_qid_i, .look_qid_o, .look_i, .pop_valid_o, .pop_qid_o,
    .rd_valid_o, .rd_o, .rd_ready_i, .give_i(rsp_i.valid && rsp_i.last), .give_tag_i(rsp_i.tag),
    .frame_valid_o(frame_valid), .frame_o(frame), .issue_valid_o(issue_valid), .issue_o(issue),
    .start_i(start), .free_i(free_beat),
    .ended_i(ended), .zero_valid_o(zero_valid), .zero_o(zero), .zero_ready_i(zero_ready),
    .failed_valid_o(failed_valid), .failed_o(failed), .failed_ready_i(failed_ready),
    .idle_o(read_idle)
  );

  qdma_h2c_stream u_stream (
    .clk, .rstn, .ready_o(start), .fence_i, .fence_busy_o(stream_busy),
    .frame_valid_i(frame_valid), .frame_i(frame), .issue_valid_i(issue_valid), .issue_i(issue), .rsp_i,
    .free_o(free_beat),
    .m_axis_tvalid(m_axis_h2c_tvalid), .m_axis_tlast(m_axis_h2c_tlast), .m_axis_tdata(m_axis_h2c_tdata),
    .m_axis_tuser_qid(m_axis_h2c_tuser_qid), .m_axis_tuser_err(m_axis_h2c_tuser_err),
    .m_axis_tuser_mdata(m_axis_h2c_tuser_mdata), .m_axis_tuser_mty(m_axis_h2c_tuser_mty),
    .m_axis_tready(m_axis_h2c_tready),
    .end_valid_o(end_valid), .end_o(ending), .end_room_i(end_room)
  );
  assign m_axis_h2c_tcrc            = '0;
  assign m_axis_h2c_tuser_port_id   = '0;
  assign m_axis_h2c_tuser_zero_byte = 1'b0;

  qdma_h2c_writeback #(.NumQueue(NumQueue)) u_writeback (
    .clk, .rstn, .wb_interval_i, .fence_i, .fence_busy_o(writeback_busy),
    .end_valid_i(end_valid), .end_i(ending), .end_room_o(end_room), .ended_o(ended),
    .zero_valid_i(zero_valid), .zero_i(zero), .zero_ready_o(zero_ready),
    .failed_valid_i(failed_valid), .failed_i(failed), .failed_ready_o(failed_ready),
    .look2_qid_o, .look2_i, .done_valid_o, .done_qid_o, .done_cidx_o, .done_generation_o,
    .stop_valid_o, .stop_qid_o, .stop_err_o, .stop_ready_i, .irq_disarm_valid_o, .irq_disarm_qid_o,
    .err_sent_valid_o, .err_sent_qid_o, .cmp_valid_o, .cmp_o, .cmp_ready_i, .irq_valid_o, .irq_o, .irq_ready_i, .fault_o,
    .idle_o(writeback_idle)
  );
  assign fence_busy_o = stream_busy || writeback_busy;
  assign idle_o       = start && read_idle && writeback_idle;
endmodule
`default_nettype wire
