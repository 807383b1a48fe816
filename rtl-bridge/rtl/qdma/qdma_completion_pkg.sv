// Types inside the completion engine: a queue's context and state, an operation on it, and what it sends out.
//
// Source: qdma.md 3.5 (context words); regs/src/context.rs has the same layout.
`default_nettype none
package qdma_completion_pkg;
  import qdma_pkg::*;

  // ---- Completion context, words 5 to 0.
  typedef struct packed {
    logic  [8:0] reserved;                             // 0
    logic  [2:0] port_id;
    logic        sh_cmpt;
    logic        vio_eop;
    logic  [3:0] base_5_2;
    logic        pasid_en;
    logic [21:0] pasid;
    logic  [3:0] host_id;
    logic        dir_c2h;
    logic        virtio;
    logic        dis_intr_on_vf;
    logic        int_aggr;
    logic [10:0] vector;
    logic        at;
    logic        ovf_chk_dis;
    logic        full_upd;
    logic        timer_running;
    logic        user_trig_pend;
    logic  [1:0] err;                                  // 1 bad CIDX, 2 descriptor error, 3 overflow
    logic        valid;
    index_t      cidx;
    index_t      pidx;
    logic  [1:0] entry_size;                           // 8 << entry_size bytes
    logic [57:0] base_63_6;
    logic  [3:0] ring_size_index;
    logic        color;                                // of the next entry
    logic  [1:0] int_st;
    logic  [3:0] timer_index;
    logic  [3:0] counter_index;
    logic [11:0] func_id;
    logic  [2:0] trigger_mode;
    logic        en_int;
    logic        en_stat_desc;
  } completion_context_t;

  // ---- A queue: its context and what software does not see.
  typedef enum logic [1:0] {
    StateUnarmed     = 2'd0,                           // no doorbell since the context was written
    StateMonitor     = 2'd1,                           // waits for its mode's condition
    StateOutstanding = 2'd2                            // notified; waits for the doorbell
  } notify_state_e;
  typedef struct packed {
    completion_context_t ctxt;
    notify_state_e       state;
    logic                armed;                        // the next notification may interrupt
    logic          [2:0] held;                         // entries before pidx that are in the line only
  } queue_t;

  // ---- Operation on a queue.
  typedef enum logic [2:0] {
    OpEntry   = 3'd0,
    OpBell    = 3'd1,
    OpTimer   = 3'd2,
    OpLine    = 3'd3,                                  // write what the line holds
    OpContext = 3'd4
  } op_e;
  typedef struct packed {
    op_e         kind;
    qid_t        qid;
    logic [63:0] data;                                 // OpEntry: low 8 bytes; OpBell: as written, in 31:0
    outcome_e    outcome;                              // OpEntry: of its frame
    drop_e       why;                                  // OpEntry: if that is lost
  } op_t;

  // ---- What an operation tells moderation.
  typedef enum logic [2:0] {
    EventNone     = 3'd0,
    EventEntry    = 3'd1,                              // an entry was added
    EventBell     = 3'd2,                              // CIDX was accepted
    EventTimer    = 3'd3,
    EventFail     = 3'd4,                              // the queue fails
    EventOverflow = 3'd5                               // it fails by overflow: its status word is always written
  } event_e;

  // ---- What an operation sends out: bytes of a line, then a status word, then an interrupt, each if its bit is 1.
  typedef struct packed {
    logic        line;
    logic        status;
    logic        irq;
    qid_t        qid;
    func_t       func;
    addr_t       line_addr;                            // of the line's byte 0
    logic  [2:0] first;                                // first and last 8 bytes of the line to write
    logic  [2:0] last;
    logic  [1:0] entry_size;
    addr_t       status_addr;
    logic [36:0] status_word;
    logic [10:0] vector;
  } notice_t;
endpackage
`default_nettype wire
