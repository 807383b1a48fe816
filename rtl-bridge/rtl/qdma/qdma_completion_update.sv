// One operation on one completion queue: context and state before, context and state after. Combinational.
//
// Ring arithmetic, stamps, failures and context commands are decided here, notifications in qdma_moderation. Tables are read
// as they are now. The caller keeps the queue in a memory, the entry in a line, and carries out what comes out.
// Out of range: see qdma_completion. A producer index outside the ring (its table entry changed) counts as a full ring.
//
// Source: qdma.md 3.5, 5.1, 5.4 to 5.6, 7, 8.
`default_nettype none
module qdma_completion_update import qdma_pkg::*, qdma_completion_pkg::*; (
  input  wire config_t          config_i,
  // Operation
  input  wire                   op_valid_i,
  input  wire op_t              op_i,
  input  wire                   in_range_i,           // its queue exists
  input  wire context_command_t ctxt_i,               // for OpContext
  // Queue before and after
  input  wire queue_t           queue_i,
  output logic                  queue_we_o,
  output queue_t                queue_o,
  // Entry into the line
  output logic                  word_we_o,
  output logic            [2:0] word_index_o,         // 8 bytes each
  output logic           [63:0] word_o,
  // Out
  output logic                  notice_valid_o,
  output notice_t               notice_o,
  output logic                  timer_start_o,
  output logic                  timer_stop_o,
  output logic           [15:0] timer_ticks_o,
  output fault_e                fault_o,
  output logic                  drop_o,               // the completion becomes no entry
  output drop_e                 why_o                 // with drop_o
);
  // ---- Faults for the alarm tests: 11 wraps one entry late, 12 keeps the color, 13 takes the slot before the status slot,
  // 17 leaves the line of an invalidated queue for later. ----
  logic fault_wrap, fault_color, fault_slot, fault_stop;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_wrap  = fault == 11;
  assign fault_color = fault == 12;
  assign fault_slot  = fault == 13;
  assign fault_stop  = fault == 17;
`else
  assign fault_wrap  = 1'b0;
  assign fault_color = 1'b0;
  assign fault_slot  = 1'b0;
  assign fault_stop  = 1'b0;
`endif

  localparam logic [1:0] ErrBadCidx = 2'd1, ErrDescriptor = 2'd2, ErrOverflow = 2'd3;
  localparam logic [3:0] SelTimer = 4'd11;

  function automatic logic [63:0] bit_at(input logic [15:0] place);
    return place < 16'd64 ? 64'd1 << place[5:0] : '0;
  endfunction
  // Bytes from the ring's base to an entry.
  function automatic logic [21:0] offset(input index_t index, input logic [1:0] entry_size);
    return 22'({index, 3'b0}) << entry_size;
  endfunction

  // ---- What the operation does to the ring, and the event that it is for moderation.
  queue_t              ringed;                        // after that, before moderation
  event_e              happened;
  logic [15:0]         ring_size, entries;
  index_t              unread;
  logic                placed, wrapped, line_due;
  wire                 failed = op_i.outcome == FrameFailed;

  always_comb begin
    ringed    = queue_i;
    happened  = EventNone;
    ring_size = config_i.ring_size[queue_i.ctxt.ring_size_index];
    entries   = ring_size + 16'(fault_wrap);
    unread    = '0;
    placed    = 1'b0;
    wrapped   = 1'b0;
    line_due  = 1'b0;
    drop_o    = 1'b0;
    why_o     = DropNone;
    fault_o   = FaultNone;
    if (op_valid_i) begin
      unread = ring_distance(queue_i.ctxt.cidx, queue_i.ctxt.pidx, entries);
      unique case (op_i.kind)
        OpEntry: begin
          if (!in_range_i || !queue_i.ctxt.valid) begin
            drop_o  = 1'b1;
            fault_o = FaultCmptInvalidQueue;
            unique case (op_i.outcome)
              FrameLost:   why_o = op_i.why;
              FrameFailed: why_o = DropFailed;
              default:     why_o = DropCmptInvalidQueue;
            endcase
          end else if (op_i.outcome == FrameLost) begin
            drop_o  = 1'b1;
            why_o   = op_i.why;
          end else if (ring_size < 16'd3 || queue_i.ctxt.pidx >= entries - 16'd1 ||
                       (unread >= entries - 16'd2 && !queue_i.ctxt.ovf_chk_dis)) begin
            drop_o            = 1'b1;
            fault_o           = FaultCmptRingFull;
            why_o             = DropCmptRingFull;
            happened          = EventOverflow;
            ringed.ctxt.valid = 1'b0;
            ringed.ctxt.err   = ErrOverflow;
          end else begin
            placed            = 1'b1;
            ringed.ctxt.pidx  = ring_next(queue_i.ctxt.pidx, entries);
            wrapped           = ringed.ctxt.pidx == '0;
            ringed.ctxt.color = queue_i.ctxt.color ^ (wrapped && !fault_color);
            ringed.ctxt.valid = !failed;
            if (failed) ringed.ctxt.err = ErrDescriptor;
            happened          = failed ? EventFail : EventEntry;
            unread            = ring_distance(ringed.ctxt.cidx, ringed.ctxt.pidx, entries);
          end
        end
        OpBell: if (queue_i.ctxt.valid) begin
          ringed.state = StateMonitor;                // what was outstanding is serviced, be CIDX good or bad
          ringed.armed = op_i.data[28];
          if (ring_size < 16'd3 || op_i.data[15:0] >= entries - 16'd1 ||
              ring_distance(queue_i.ctxt.cidx, op_i.data[15:0], entries) > unread) begin
            fault_o           = FaultBadCidx;
            happened          = EventFail;
            ringed.ctxt.valid = 1'b0;
            ringed.ctxt.err   = ErrBadCidx;
          end else begin
            happened         = EventBell;
            ringed.ctxt.cidx = op_i.data[15:0];
            unread           = ring_distance(op_i.data[15:0], queue_i.ctxt.pidx, entries);
            if (queue_i.ctxt.full_upd) begin
              ringed.ctxt.counter_index = op_i.data[19:16];
              ringed.ctxt.timer_index   = op_i.data[23:20];
              ringed.ctxt.trigger_mode  = op_i.data[26:24];
              ringed.ctxt.en_stat_desc  = op_i.data[27];
              ringed.ctxt.en_int        = op_i.data[28];
            end
          end
        end
        OpTimer: begin
          ringed.ctxt.timer_running = 1'b0;
          happened                  = EventTimer;
        end
        OpLine: line_due = 1'b1;
        OpContext: if (ctxt_i.sel == SelTimer) begin
          ringed.ctxt.timer_running = 1'b0;
        end else if (ctxt_i.op != CtxtRead) begin
          line_due = !(fault_stop && ctxt_i.op == CtxtInvalidate);
          unique case (ctxt_i.op)
            CtxtClear: ringed.ctxt       = '0;
            CtxtWrite: ringed.ctxt       = (queue_i.ctxt & ~ctxt_i.mask[191:0]) | (ctxt_i.data[191:0] & ctxt_i.mask[191:0]);
            default:   ringed.ctxt.valid = 1'b0;
          endcase
          ringed.ctxt.reserved      = '0;
          ringed.ctxt.timer_running = 1'b0;
          ringed.state              = StateUnarmed;
          ringed.armed              = 1'b0;
        end
        default: ;
      endcase
    end
  end

  // ---- Moderation
  notify_state_e state;
  logic          armed, notify, status, irq, int_state, timer_stop;

  assign timer_ticks_o = config_i.timer_count[ringed.ctxt.timer_index];

  qdma_moderation u_moderation (
    .event_i(happened), .state_i(ringed.state), .armed_i(ringed.armed), .mode_i(ringed.ctxt.trigger_mode),
    .unread_i(unread), .threshold_i(config_i.counter_threshold[ringed.ctxt.counter_index]),
    .timer_empty_i(timer_ticks_o == '0 || config_i.timer_tick == '0), .timer_running_i(ringed.ctxt.timer_running),
    .en_stat_desc_i(ringed.ctxt.en_stat_desc), .en_int_i(ringed.ctxt.en_int), .int_aggr_i(ringed.ctxt.int_aggr),
    .state_o(state), .armed_o(armed), .notify_o(notify), .status_o(status), .irq_o(irq), .int_state_o(int_state),
    .timer_start_o(timer_start_o), .timer_stop_o(timer_stop)
  );

  // ---- The queue after the operation, and what goes out. The line and the ring are the context's before the operation: a
  // command changes them only after what the line holds was sent.
  logic [21:0] entry_offset;
  addr_t       base;
  logic  [3:0] held;                                  // the new entry included
  logic        flush;

  always_comb begin
    queue_o        = ringed;
    queue_we_o     = 1'b0;
    word_we_o      = placed;
    word_index_o   = '0;
    word_o         = '0;
    notice_valid_o = 1'b0;
    notice_o       = '0;
    timer_stop_o   = timer_stop;
    entry_offset   = '0;
    base           = '0;
    held           = '0;
    flush          = 1'b0;
    if (op_valid_i) begin
      queue_we_o   = in_range_i && !(op_i.kind == OpContext && ctxt_i.op == CtxtRead) && !(op_i.kind == OpEntry && drop_o &&
                     happened == EventNone);
      timer_stop_o = timer_stop || (queue_i.ctxt.timer_running && op_i.kind == OpContext && queue_we_o);
      entry_offset = offset(queue_i.ctxt.pidx, queue_i.ctxt.entry_size);
      base         = {queue_i.ctxt.base_63_6, queue_i.ctxt.base_5_2, 2'b0};
      word_index_o = entry_offset[5:3];
      word_o       = (op_i.data & ~bit_at(config_i.color_bit) & ~bit_at(config_i.error_bit)) |
                     (queue_i.ctxt.color ? bit_at(config_i.color_bit) : '0) |
                     (failed ? bit_at(config_i.error_bit) : '0);

      held  = 4'(queue_i.held) + 4'(placed);
      flush = held != '0 && (line_due || status || irq || wrapped ||
                             happened == EventFail || happened == EventOverflow ||
                             (placed && 3'(entry_offset[5:3] + (3'd1 << queue_i.ctxt.entry_size)) == '0) ||
                             (placed && queue_i.ctxt.entry_size == 2'd3));
      queue_o.state = state;
      queue_o.armed = armed;
      queue_o.held  = flush ? '0 : held[2:0];
      if (notify) queue_o.ctxt.int_st = 2'(int_state);
      if (timer_start_o)     queue_o.ctxt.timer_running = 1'b1;
      else if (timer_stop_o) queue_o.ctxt.timer_running = 1'b0;

      notice_o.line        = flush;
      notice_o.status      = status && ring_size >= 16'd3;
      notice_o.irq         = irq;
      notice_o.qid         = op_i.qid;
      notice_o.func        = dma_func(queue_i.ctxt.func_id);
      notice_o.line_addr   = base + addr_t'({entry_offset[21:6], 6'b0});
      notice_o.first       = entry_offset[5:3] - (queue_i.held << queue_i.ctxt.entry_size);
      notice_o.last        = entry_offset[5:3] - 3'd1 + (placed ? 3'(4'd1 << queue_i.ctxt.entry_size) : 3'd0);
      notice_o.entry_size  = queue_i.ctxt.entry_size;
      notice_o.status_addr = base + addr_t'(offset(ring_size - 16'd1 - 16'(fault_slot), queue_i.ctxt.entry_size));
      notice_o.status_word = {ringed.ctxt.err, 1'b0, int_state, ringed.ctxt.color, ringed.ctxt.cidx, ringed.ctxt.pidx};
      notice_o.vector      = queue_i.ctxt.vector;
      notice_valid_o       = notice_o.line || notice_o.status || notice_o.irq;
    end
  end

  // Bits of the context, and of a doorbell, that nothing here depends on.
  wire unused = ^{config_i.buffer_size, config_i.wb_interval, config_i.prefetch_num, config_i.coalesce,
                  ctxt_i.qid, ctxt_i.data[255:192], ctxt_i.mask[255:192], entry_offset[2:0]};
endmodule
`default_nettype wire
