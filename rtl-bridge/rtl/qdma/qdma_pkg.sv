// Types of the QDMA engine: what its modules say to one another and to host memory.
//
// The engine's parts meet only in these types:
//
//   qdma_registers ── config_t ──────────────► all          tables and settings, read when they are used
//                  ── context_command_t ─────► owner of a context
//                  ── doorbell_t ────────────► qdma_desc_engine, qdma_completion
//                  ◄─ fault_t ─────────────── all           error tree
//   host memory    ◄─ read_req_t, read_rsp_t ─ qdma_desc_engine, qdma_h2c_read
//                  ◄─ write_t ──────────────── qdma_c2h_write, qdma_completion, qdma_h2c_writeback
//
// Byte 0 of data lies in bits 7:0. Ring indices count entries from 0; a table value N includes the status entry, so an
// index runs from 0 to N-2 and at most N-2 entries are outstanding. Source: qdma.md sections 3 to 8.
`default_nettype none
package qdma_pkg;
  localparam int unsigned QidWidth  = 11;              // absolute queue number
  localparam int unsigned FuncWidth = 8;
  localparam int unsigned TagWidth  = 8;

  typedef logic  [QidWidth-1:0] qid_t;
  typedef logic [FuncWidth-1:0] func_t;
  typedef logic          [15:0] index_t;               // of a ring entry
  typedef logic          [63:0] addr_t;                // DMA address, bytes
  // Of a queue: changes whenever it is cleared, invalidated, started or stopped. It comes round only after thousands of lives,
  // so that a frame which the shell has not taken since an old one is not taken for one of the present.
  typedef logic          [15:0] generation_t;

  // ---- Registers to engines. They may change at any time: look a table up when the context that names its entry is used.
  typedef struct packed {
    logic [15:0][15:0] ring_size;                      // entries, the status entry included
    logic [15:0][15:0] buffer_size;                    // bytes of a C2H buffer
    logic [15:0][15:0] timer_count;                    // ticks
    logic [15:0][15:0] counter_threshold;              // completions
    logic       [31:0] timer_tick;                     // cycles of clk in a tick; 0: timers have no length
    logic        [2:0] wb_interval;                    // a status word every 4 << wb_interval H2C descriptors
    logic       [15:0] color_bit;                      // place of the color in a completion entry
    logic       [15:0] error_bit;                      // and of the error bit
    logic        [5:0] prefetch_num;                   // C2H descriptors kept ready for a queue; 0: what the pins say
    logic       [31:0] coalesce;                       // C2H_COALESCE as written
  } config_t;

  // ---- Context window to the owner of a context. valid stays high, the command unchanged, until done is high for one cycle.
  typedef enum logic [1:0] {CtxtClear = 2'd0, CtxtWrite = 2'd1, CtxtRead = 2'd2, CtxtInvalidate = 2'd3} context_op_e;
  typedef struct packed {
    context_op_e  op;
    logic   [3:0] sel;                                 // qdma.md section 3
    qid_t         qid;                                 // in range
    logic [255:0] data;                                // word 0 in bits 31:0
    logic [255:0] mask;                                // CtxtWrite changes the bits that are 1 here
  } context_command_t;

  // ---- A doorbell of a queue that its function owns.
  typedef enum logic [1:0] {BellH2cPidx = 2'd1, BellC2hPidx = 2'd2, BellCmptCidx = 2'd3} bell_e;   // offset bits 3:2
  typedef struct packed {
    bell_e       kind;
    qid_t        qid;                                  // absolute
    logic [31:0] data;                                 // as written
  } doorbell_t;

  // ---- Faults, one port a source, any number in a cycle, never held back.
  typedef enum logic [4:0] {
    FaultNone,
    FaultDescPoison,        // descriptor read: poisoned data
    FaultDescRead,          // descriptor read: unsupported request or completer abort
    FaultDescParam,         // a context asks for what this engine can't do
    FaultDataPoison,        // H2C data read: poisoned data
    FaultDataRead,          // H2C data read: unsupported request
    FaultInvalidPidx,       // PIDX outside the ring, or more outstanding than it holds
    FaultCsrUnmapped,       // register access outside CSR space
    FaultQidRange,          // doorbell for a queue that the function does not own
    FaultLenMismatch,       // a C2H frame's beats disagree with ctrl_len
    FaultQidMismatch,       // a completion's queue differs from its frame's
    FaultDescResponse,      // a C2H frame met a queue in error
    FaultMsi,               // vector outside the function's MSI-X table
    FaultDescCount,         // a C2H frame needs more descriptors than one may
    FaultCmptInvalidQueue,
    FaultCmptRingFull,
    FaultBadCidx,
    FaultZeroLength         // H2C descriptor of length 0
  } fault_e;
  typedef struct packed {
    fault_e kind;                                      // FaultNone: nothing
    logic   h2c;                                       // the queue is an H2C queue
    qid_t   qid;
    index_t cidx;                                      // consumer index of the queue, for the descriptor log
    index_t old_pidx;                                  // FaultInvalidPidx only, else 0
    index_t new_pidx;
  } fault_t;

  // ---- Host memory. A read's answer is one or more beats, its bytes from byte 0 on; beats of one answer come in order and
  // with no other answer's between them, answers of different tags in any order. An answer with an error may have fewer
  // beats. A read and a write never cross a 4 KiB boundary of addr.
  typedef struct packed {
    func_t               func;
    addr_t               addr;                         // of byte 0, any alignment
    logic         [12:0] len;                          // bytes, 1 to 4096
    logic [TagWidth-1:0] tag;
  } read_req_t;
  typedef enum logic [1:0] {ReadOk = 2'd0, ReadUnsupported = 2'd1, ReadPoisoned = 2'd2} read_status_e;
  typedef struct packed {
    logic                valid;                        // no ready: room was kept when the read was sent
    logic [TagWidth-1:0] tag;
    logic        [511:0] data;
    logic                last;                         // last beat of the answer
    read_status_e        status;                       // of the whole answer, on each beat; data are void unless ReadOk
  } read_rsp_t;
  // Byte i of data goes to addr + i where be[i]. The written bytes of a beat lie within one 4 KiB page; addr itself may not.
  typedef struct packed {
    func_t        func;
    addr_t        addr;
    logic [511:0] data;
    logic  [63:0] be;
    logic         last;                                // the next beat does not go on with this one's addresses
  } write_t;

  // ---- Interrupt of a queue, after its status word was taken.
  typedef struct packed {
    func_t       func;
    logic [10:0] vector;
    qid_t        qid;
  } interrupt_t;

  // ---- How a C2H frame went.
  typedef enum logic [1:0] {
    FrameWritten = 2'd0,                               // its bytes were taken by host memory
    FrameFailed  = 2'd1,                               // its queue is in error: a completion with the error bit is due
    FrameLost    = 2'd2                                // dropped; so is its completion
  } outcome_e;
  // Why no completion entry came of a frame; the numbers are those of mon_cmpt_drop_reason.
  typedef enum logic [3:0] {
    DropNone             = 4'd0,
    DropLate             = 4'd1,                       // the completion's frame is past
    DropInvalidQueue     = 4'd2,                       // the frame's queue is not enabled, or does not exist
    DropCmptInvalidQueue = 4'd3,                       // the completion's queue is not valid, or does not exist
    DropCmptRingFull     = 4'd4,
    DropTooLong          = 4'd5,                       // the frame wants more buffers than one may have
    DropStopped          = 4'd6,                       // its queue was stopped while it waited
    DropFailed           = 4'd7                        // its queue is in error, and so is the completion's
  } drop_e;
  typedef struct packed {
    logic [15:0] pkt_id;                               // first frame 1, +1 each, wraps at 16 bits
    qid_t        qid;
    outcome_e    outcome;
    drop_e       why;                                  // FrameLost only
  } frame_done_t;

  // ---- A descriptor queue as qdma_desc_engine shows it.
  typedef struct packed {
    logic         enabled;                             // qen; count stays 0 until a doorbell came
    logic         failed;                              // err is not 0
    logic   [1:0] err;                                 // bit 0 descriptor, bit 1 data
    generation_t  generation;
    func_t        func;
    addr_t        ring_base;
    logic  [15:0] ring_entries;                        // from the table now, the status entry included
    index_t       pidx;
    index_t       head_index;                          // ring index of desc
    logic   [8:0] count;                               // descriptors ready
    logic [127:0] desc;                                // the oldest of them, void while count is 0
    logic         wbi_chk;
    logic         wbi_intvl_en;
    logic         wbk_en;
    logic         irq_en;
    logic         irq_arm;
    logic         int_aggr;
    logic  [10:0] vector;
  } desc_queue_t;

  // ---- Function of a context, 12 bits, as host memory is told it. Numbers above 255 are nobody's: they all become the last
  // one, which no card has, and must not be taken for another's low bits.
  function automatic func_t dma_func(input logic [11:0] number);
    return number[11:FuncWidth] == '0 ? number[FuncWidth-1:0] : '1;
  endfunction

  // ---- Ring arithmetic. usable = N - 1 entries, indices 0 to usable - 1.
  function automatic index_t ring_next(input index_t index, input logic [15:0] entries);
    return index + 16'd1 >= entries - 16'd1 ? 16'd0 : index + 16'd1;
  endfunction
  // Entries from `from` up to but without `to`, both inside the ring.
  function automatic index_t ring_distance(input index_t from, input index_t to, input logic [15:0] entries);
    return to >= from ? to - from : to + (entries - 16'd1) - from;
  endfunction
endpackage
`default_nettype wire
