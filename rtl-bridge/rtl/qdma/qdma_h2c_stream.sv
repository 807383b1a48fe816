// H2C answers to frames on the stream, in the order in which their descriptors were popped.
//
//   frame_i ─► list of frames ──────────────────┐
//   issue_i, rsp_i ─► qdma_h2c_reorder ─ verdict ─► qdma_h2c_pack ─► m_axis_*, end_*
//
// A frame leaves when all its bytes are here; one whose data take long holds those behind it. 1 frame or 1 beat a cycle,
// 5 cycles from the last answer's last beat to the first beat out.
`include "onic_assert.svh"
`default_nettype none
module qdma_h2c_stream import qdma_pkg::*, qdma_h2c_pkg::*; (
  input  wire          clk,
  input  wire          rstn,                           // synchronous, active low, power-up only
  output logic         ready_o,                        // 2048 cycles after reset; stays high
  // Fence: until all frames popped before have the answers to their reads
  input  wire          fence_i,
  output logic         fence_busy_o,
  // Frames popped, reads before they are sent, their answers
  input  wire          frame_valid_i,
  input  wire frame_t  frame_i,
  input  wire          issue_valid_i,
  input  wire issue_t  issue_i,
  input  wire read_rsp_t rsp_i,
  output logic         free_o,                         // a beat of the reorder buffer is free again
  // Frames out
  output logic         m_axis_tvalid,
  output logic         m_axis_tlast,
  output logic [511:0] m_axis_tdata,
  output qid_t         m_axis_tuser_qid,
  output logic         m_axis_tuser_err,
  output logic  [31:0] m_axis_tuser_mdata,
  output logic   [5:0] m_axis_tuser_mty,
  input  wire          m_axis_tready,
  // Frames taken
  output logic         end_valid_o,
  output end_t         end_o,
  input  wire          end_room_i
);
  logic         verdict_valid, frame_take, list_ready, frame_valid;
  end_e         verdict;
  frame_t       frame;
  logic [511:0] data;
  wire [$clog2(MaxFrames):0] unused_count;

  sync_fifo #(.Width($bits(frame_t)), .Depth(MaxFrames)) u_frames (
    .clk, .rstn,
    .wr_en_i(frame_valid_i), .wr_data_i(frame_i), .wr_ready_o(list_ready),
    .rd_valid_o(frame_valid), .rd_data_o(frame), .rd_en_i(frame_take), .count_o(unused_count)
  );

  qdma_h2c_reorder u_reorder (
    .clk, .rstn, .ready_o, .fence_i, .fence_busy_o, .frame_valid_i, .issue_valid_i, .issue_i, .rsp_i,
    .verdict_valid_o(verdict_valid), .verdict_o(verdict), .verdict_take_i(frame_take),
    .beat_take_i(free_o), .data_o(data)
  );

  qdma_h2c_pack u_pack (
    .clk, .rstn,
    .frame_valid_i(verdict_valid), .frame_i(frame), .verdict_i(verdict), .frame_take_o(frame_take),
    .beat_take_o(free_o), .data_i(data),
    .m_axis_tvalid, .m_axis_tlast, .m_axis_tdata, .m_axis_tuser_qid, .m_axis_tuser_err, .m_axis_tuser_mdata,
    .m_axis_tuser_mty, .m_axis_tready,
    .end_valid_o, .end_o, .end_room_i
  );

  `ONIC_ASSERT(ListRoom_A, clk, rstn, !frame_valid_i || list_ready, "more frames than the reorder buffer has room for")
  `ONIC_ASSERT(VerdictHasFrame_A, clk, rstn, !verdict_valid || frame_valid, "a verdict without its frame")
endmodule
`default_nettype wire
