// What the parts of qdma_c2h_write say to one another.
`default_nettype none
package qdma_c2h_pkg;
  import qdma_pkg::*;

  localparam int unsigned BuffersMax = 31;             // of one frame; source: qdma.md 5.3

  // A frame as it comes in.
  typedef struct packed {
    qid_t        qid;
    logic [15:0] len;                                  // ctrl_len, bytes
  } frame_t;

  // What was decided about a frame.
  typedef struct packed {
    qid_t        qid;
    func_t       func;                                 // of the queue; FrameWritten only
    logic [15:0] len;                                  // ctrl_len, bytes
    outcome_e    outcome;
    drop_e       why;                                  // FrameLost only
    fault_e      fault;                                // why it is not written, if that is a fault
    logic [15:0] buffer_size;                          // bytes; FrameWritten only
    logic  [4:0] buffers;                              // popped for it; FrameWritten only
  } verdict_t;
endpackage
`default_nettype wire
