// Card to host: frames of the C2H stream into the buffers that software posted.
//
//   s_axis_c2h ─┬─► beats (FIFO) ───────────────────────────────────────► qdma_c2h_scatter ─► pay, frame_done
//               └─► queue, length (FIFO) ─► qdma_c2h_decide ─► verdicts ─►   ▲
//   context commands ─► qdma_prefetch_context ─┘   │                         │
//   C2H qdma_desc_engine ◄── look, pop ────────────┴─► qdma_c2h_buffers ─────┘ buffer addresses
//
// A frame's fate is decided at its first beat, in order, once:
//   its queue is not enabled (software or prefetch context), or does not exist: lost
//   its queue is in error: failed, FaultDescResponse
//   it needs more than 31 buffers, or its buffers have no size: lost, FaultDescCount
//   its descriptors are there: they are popped and the frame is written
//   else it waits, and all frames behind it; with DropNoDesc it is lost, and no_desc_o counts it
// It takes ceil(ctrl_len / buffer size) buffers, at least one. A failed or lost frame passes at one beat a cycle. A frame that
// is longer than the input FIFO passes, since no decision needs more than the first beat.
//
// Writes: a beat goes out as it came. Where it meets the end of a buffer or of a 4 KiB page it is sent once more, with other
// byte enables and the address that puts its other bytes into their place, so no byte is ever shifted.
// Length: a frame whose beats have fewer or more bytes than ctrl_len is written up to the smaller of both and reported
// (FaultLenMismatch); it counts as written. A frame of ctrl_len 0 is one beat, takes a buffer, and writes nothing.
//
// Latency from a beat to pay_valid_o: 5 cycles. Throughput: 1 beat a cycle and 1 cycle more for each split, so 1 frame of one
// beat a cycle, on one queue or many. Back-pressure honoured everywhere. s_axis_c2h_tready is a register.
//
// Fence: frames whose first descriptor had been popped at the pulse are written to their end and handed to frame_done before
// busy falls. So the shell must finish a frame that it has begun, and frame_done must be taken. A queue that is stopped
// while the descriptors of a frame are being popped, one a cycle, loses that frame: no byte of it is written.
//
// Fault of all kinds: cidx is 0, it says nothing about a frame. Left out: markers, the CRC (the top leaves tcrc, ctrl_marker,
// ctrl_port_id, ctrl_ecc and ctrl_has_cmpt open).
//
// Source: qdma.md sections 3.4, 5.3, 7.5 and 8; AMD PG302.
`include "onic_assert.svh"
`default_nettype none
module qdma_c2h_write import qdma_pkg::*; #(
  parameter int unsigned NumQueue   = 512,            // a power of two, 2 to 2048
  parameter int unsigned InputDepth = 32,             // beats, a power of two
  parameter bit          DropNoDesc = 1'b0            // 1: a frame without descriptors is lost instead of waiting
) (
  input  wire                    clk,
  input  wire                    rstn,                // synchronous, active low; power-up only
  input  wire config_t           config_i,            // buffer_size is used
  // Context commands for selector 7
  input  wire                    ctxt_valid_i,
  input  wire context_command_t  ctxt_i,
  output logic                   ctxt_done_o,         // one cycle
  output logic           [255:0] ctxt_rdata_o,        // CtxtRead: with ctxt_done_o
  // Fence
  input  wire                    fence_i,             // pulse
  output logic                   fence_busy_o,        // from the cycle after the pulse
  // Frames in; ctrl_* count in the first beat, mty in the last
  input  wire                    s_axis_c2h_tvalid,
  input  wire                    s_axis_c2h_tlast,
  input  wire            [511:0] s_axis_c2h_tdata,
  input  wire             [15:0] s_axis_c2h_ctrl_len, // bytes
  input  wire             [10:0] s_axis_c2h_ctrl_qid,
  input  wire              [5:0] s_axis_c2h_mty,
  output logic                   s_axis_c2h_tready,
  // C2H descriptor engine: the prefetch context's enable, and what a waiting frame needs
  input  wire qid_t              pfch_qid_i,
  output logic                   pfch_en_o,           // of pfch_qid_i, one cycle later
  output logic                   demand_valid_o,      // level
  output qid_t                   demand_qid_o,
  output logic             [5:0] demand_count_o,      // descriptors that the frame needs in all
  // Look-up and pop
  output qid_t                   look_qid_o,
  input  wire desc_queue_t       look_i,              // of look_qid_o, one cycle later
  output qid_t                   look2_qid_o,
  input  wire desc_queue_t       look2_i,
  output logic                   pop_valid_o,
  output qid_t                   pop_qid_o,
  input  wire                    news_valid_i,        // queue has changed: has it failed?
  input  wire qid_t              news_qid_i,
  // Payload to host memory
  output logic                   pay_valid_o,
  output write_t                 pay_o,
  input  wire                    pay_ready_i,
  // How frames went, in order of their packet ids; written ones after host memory took their last byte
  output logic                   frame_done_valid_o,
  output frame_done_t            frame_done_o,
  input  wire                    frame_done_ready_i,
  // Faults; frames lost for want of descriptors
  output fault_t                 fault_o,
  output logic                   no_desc_o            // one cycle each
);
  `ONIC_ASSERT_PARAM(NumQueue, NumQueue >= 2 && NumQueue <= 2048 && (NumQueue & (NumQueue - 1)) == 0,
                     "NumQueue must be a power of two, 2 to 2048")

  assign ctxt_done_o        = 1'b0;
  assign ctxt_rdata_o       = '0;
  assign fence_busy_o       = 1'b0;
  assign s_axis_c2h_tready  = 1'b0;
  assign pfch_en_o          = 1'b0;
  assign demand_valid_o     = 1'b0;
  assign demand_qid_o       = '0;
  assign demand_count_o     = '0;
  assign look_qid_o         = '0;
  assign look2_qid_o        = '0;
  assign pop_valid_o        = 1'b0;
  assign pop_qid_o          = '0;
  assign pay_valid_o        = 1'b0;
  assign pay_o              = '0;
  assign frame_done_valid_o = 1'b0;
  assign frame_done_o       = '0;
  assign fault_o            = '0;
  assign no_desc_o          = 1'b0;
endmodule
`default_nettype wire
