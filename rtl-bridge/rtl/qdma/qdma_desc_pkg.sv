// What the parts of qdma_desc_engine say to one another.
//
// Slots count a queue's descriptors modulo 512; the low bits are the place in its descriptor memory. Between sent, delivered
// and popped a descriptor is in flight, then ready. A queue's entry that was not written since the queue was last flushed
// stands at its origin: slot 0, ring index origin.start.
`default_nettype none
package qdma_desc_pkg;
  import qdma_pkg::*;

  typedef logic [8:0] slot_t;

  // Software context as stored: words 0 to 4, but irq_arm has a place of its own.
  typedef struct packed {
    logic             rung;                            // a doorbell was accepted since the queue was started anew
    logic [4:0][31:0] word;
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
    logic [7:0] generation;
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
    logic [7:0] generation;
    slot_t      slot;                                  // of the first descriptor
    slot_t      count;                                 // descriptors, 1 to 256
    index_t     next;                                  // ring index behind the last
  } tag_t;

  // ---- Fields of the software context, words 0 and 1. ----
  function automatic index_t sw_pidx(input software_t sw);
    return sw.word[0][15:0];
  endfunction
  function automatic logic sw_qen(input software_t sw);
    return sw.word[1][0];
  endfunction
  function automatic logic [1:0] sw_err(input software_t sw);
    return sw.word[1][27:26];
  endfunction
  // The engine can do what the context asks for: stream, internal mode, this direction's descriptor.
  function automatic logic sw_possible(input software_t sw, input int unsigned desc_bytes);
    return sw.word[1][17:16] == (desc_bytes == 16 ? 2'd1 : 2'd0) && !sw.word[1][18] && !sw.word[1][31];
  endfunction
endpackage
`default_nettype wire
