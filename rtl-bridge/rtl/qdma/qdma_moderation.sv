// When a completion queue notifies software: modes 0 to 5, the one outstanding notification, arming. Combinational.
//
// A notification is a status word, if enabled, and an interrupt, if enabled and armed. At most one is outstanding; the next
// CIDX doorbell services it, and notifies again at once if entries are left and the mode says so. Modes 4 and 5 notify at a
// doorbell whenever entries are left. The timer runs from the first entry that comes while the queue is monitored; length 0
// notifies with that entry. Modes 0, 3 and those unknown (6, 7) notify only when the queue fails.
//
// Source: qdma.md 7.1, 7.2, 8.
`default_nettype none
module qdma_moderation import qdma_pkg::*, qdma_completion_pkg::*; (
  input  wire event_e        event_i,                 // EventNone: nothing changes
  // Queue, with the event's own changes already made
  input  wire notify_state_e state_i,
  input  wire                armed_i,
  input  wire          [2:0] mode_i,
  input  wire index_t        unread_i,
  input  wire         [15:0] threshold_i,             // entries
  input  wire                timer_empty_i,           // the timer's length is 0
  input  wire                timer_running_i,
  input  wire                en_stat_desc_i,
  input  wire                en_int_i,
  input  wire                int_aggr_i,
  // Decision
  output notify_state_e      state_o,
  output logic               armed_o,
  output logic               notify_o,
  output logic               status_o,
  output logic               irq_o,                   // interrupt
  output logic               int_state_o,             // of the status word: armed, but no interrupt goes with it
  output logic               timer_start_o,
  output logic               timer_stop_o
);
  // ---- Faults for the alarm tests: 14 forgets to look at what is left at a doorbell, 19 sends no interrupt there. ----
  logic fault_no_look, fault_no_interrupt;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_no_look      = fault == 14;
  assign fault_no_interrupt = fault == 19;
`else
  assign fault_no_look      = 1'b0;
  assign fault_no_interrupt = 1'b0;
`endif

  logic notify, irq_may;

  always_comb begin
    logic timed, counted;
    notify        = 1'b0;
    irq_may = 1'b0;
    timer_start_o = 1'b0;
    timer_stop_o  = 1'b0;
    state_o       = state_i;
    timed         = mode_i == 3'd4 || mode_i == 3'd5;
    counted       = (mode_i == 3'd2 || mode_i == 3'd5) && unread_i >= threshold_i;
    unique case (event_i)
      EventEntry: if (state_i == StateMonitor) begin
        notify        = mode_i == 3'd1 || counted || (timed && timer_empty_i);
        timer_start_o = timed && !notify && !timer_running_i;
      end
      EventBell: begin
        state_o       = StateMonitor;
        notify        = unread_i != '0 && (mode_i == 3'd1 || counted || timed) && !fault_no_look;
        timer_stop_o  = timer_running_i;
      end
      EventTimer:    notify = state_i == StateMonitor && unread_i != '0;
      EventFail:     notify = state_i != StateOutstanding;
      EventOverflow: notify = 1'b1;
      default: ;
    endcase
    if (notify) begin
      irq_may = event_i == EventOverflow ? state_i != StateOutstanding : !(event_i == EventBell && fault_no_interrupt);
      timer_stop_o  = timer_running_i;
      state_o       = StateOutstanding;
    end else if (event_i == EventFail) begin
      timer_stop_o  = timer_running_i;
    end
  end

  assign notify_o    = notify;
  assign status_o    = notify && en_stat_desc_i;
  assign irq_o = irq_may && en_int_i && armed_i && !int_aggr_i;
  assign int_state_o = armed_i && !irq_o;
  assign armed_o     = armed_i && !notify;
endmodule
`default_nettype wire
