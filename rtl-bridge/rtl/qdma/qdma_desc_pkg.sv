// What the parts of qdma_desc_engine say to one another.
//
// Slots count a queue's descriptors modulo 512; the low bits are the place in its descriptor memory. Between sent, delivered
// and popped a descriptor is in flight, then ready. A queue's entry that was not written since the queue was last flushed
// stands at its origin: slot 0, ring index origin.start.
`default_nettype none
package qdma_desc_pkg;
  import qdma_pkg::*;

  typedef logic [8:0] slot_t;

  // Software context, words 4 to 0 as the window shows them. Fields that only are kept have no name of their own.
  typedef struct packed {
    logic [19:0] kept_4;
    logic        int_aggr;
    logic [10:0] vector;
    addr_t       ring_base;
    logic        is_mm;
    logic  [1:0] kept_1c;
    logic        err_wb_sent;                          // stored as 0: it has a place of its own
    logic  [1:0] err;                                  // bit 0 descriptor, bit 1 data
    logic  [3:0] kept_1b;
    logic        irq_en;
    logic        wbk_en;
    logic        mm_channel;
    logic        bypass;
    logic  [1:0] desc_size;                            // 8 bytes << desc_size
    logic  [3:0] ring_select;                          // entry of the ring size table
    logic  [7:0] kept_1a;
    logic        wbi_intvl_en;
    logic        wbi_chk;
    logic        fcrd_en;
    logic        qen;
    logic  [2:0] kept_0;
    logic [11:0] func;
    logic        irq_arm;                              // stored as 0: it has a place of its own
    index_t      pidx;
  } words_t;
  typedef struct packed {
    logic   rung;                                      // a doorbell was accepted since the queue was started anew
    words_t ctxt;
  } software_t;
  // Words 5 to 7 of the software context and what is only stored of the others.
  typedef struct packed {
    logic [2:0][31:0] word;
    logic      [15:0] credits_used;                    // hardware context
    logic      [15:0] credits;                         // credit context
  } stored_t;

  // Written by control only.
  typedef struct packed {
    logic       run;                                   // qen, rung and no error
    generation_t generation;
    logic [3:0] ring_select;
    index_t     start;                                 // cidx when the queue was flushed
  } origin_t;
  // Written by fetch only.
  typedef struct packed {
    index_t     index;                                 // ring index of the next descriptor to read
    slot_t      slot;                                  // and its place
    logic [6:0] reads;                                 // sent, modulo 128
    logic       wake;                                  // a pop that leaves no more than wake_used in use makes room for a read
    slot_t      wake_used;
  } sent_t;
  // Written by retirement only.
  typedef struct packed {
    index_t     cidx;                                  // hardware context: the first descriptor not delivered
    slot_t      slot;
    logic [6:0] reads;                                 // answered, modulo 128
  } delivered_t;
  // Written by pops only.
  typedef struct packed {
    index_t index;                                     // ring index of the oldest descriptor
    slot_t  slot;
  } popped_t;

  // All of a queue.
  typedef struct packed {
    origin_t    origin;
    sent_t      sent;
    delivered_t delivered;
    popped_t    popped;
    index_t     done;                                  // descriptors before it are complete
  } queue_t;

  // Who reads a queue's state.
  typedef enum int unsigned {AtLook, AtLook2, AtPop, AtFetch, AtControl, AtRetire, AtAnswer, AtDone} reader_e;
  localparam int unsigned Readers = 8;

  // A read in flight.
  typedef struct packed {
    qid_t       qid;
    generation_t generation;
    slot_t      slot;                                  // of the first descriptor
    slot_t      count;                                 // descriptors, 1 to 256
    index_t     next;                                  // ring index behind the last
  } tag_t;

  // The engine can do what a context asks for: stream, internal mode, this direction's descriptor.
  function automatic logic possible(input logic [1:0] desc_size, input logic bypass, input logic is_mm,
                                    input int unsigned desc_bytes);
    return desc_size == (desc_bytes == 16 ? 2'd1 : 2'd0) && !bypass && !is_mm;
  endfunction
endpackage
`default_nettype wire
