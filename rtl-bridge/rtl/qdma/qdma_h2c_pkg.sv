// Types that the parts of the H2C path share: qdma_h2c_engine and the modules it is made of.
`default_nettype none
package qdma_h2c_pkg;
  import qdma_pkg::*;

  localparam int unsigned ReorderBeats  = 2048;        // beats of the reorder buffer
  localparam int unsigned MaxFrameBeats = 1025;        // the longest frame's in it: 65,535 bytes, broken once by a page's end
  localparam int unsigned MaxFrames     = 1024;        // frames inside it: room for MaxFrameBeats is kept for the next one

  typedef logic [$clog2(ReorderBeats)-1:0] place_t;    // of a beat
  typedef logic [$clog2(ReorderBeats):0]   number_t;   // of a read, wraps; the top bit tells one lap from the next

  // ---- What is to be read for a frame
  typedef struct packed {
    func_t       func;
    addr_t       addr;
    logic [15:0] len;                                  // bytes, not 0
  } fetch_t;

  // ---- What is to be sent. In the reorder buffer a frame has one break at most, at the end of its first 4 KiB page: the
  // beat before it holds `shift` bytes and is joined with what follows. All other beats but the last are full.
  typedef struct packed {
    qid_t        qid;
    generation_t generation;                           // of the queue when the descriptor was taken
    index_t      index;                                // of the descriptor
    index_t      next_index;                           // of the one behind it
    logic [31:0] mdata;
    logic  [5:0] mty;                                  // empty bytes of the last beat sent
    logic [10:0] beats;                                // in the reorder buffer, 1 to MaxFrameBeats
    logic  [5:0] shift;                                // 0: no break
    logic  [5:0] break_beat;                           // the beat before the break, from 0
    logic        flush;                                // the last beat sent holds only what the one before left over
  } frame_t;

  // ---- A read as it was sent, for the tag's answer
  typedef struct packed {
    logic [TagWidth-1:0] tag;
    place_t              place;                        // of its first beat
    number_t             number;
    logic          [6:0] beats;                        // 1 to 64
    logic                last;                         // the frame's last read
  } issue_t;

  // ---- How a descriptor ended
  typedef enum logic [1:0] {EndSent, EndUnsupported, EndPoisoned, EndZeroLength} end_e;
  typedef struct packed {
    qid_t       qid;
    generation_t generation;
    index_t     index;
    index_t     next_index;
    end_e       how;
  } end_t;

  // ---- A queue that was found in error
  typedef struct packed {
    qid_t       qid;
    generation_t generation;                           // of the failure: one more than that of the queue's life
    index_t     start_index;                           // where that life began
  } failed_t;
endpackage
`default_nettype wire
