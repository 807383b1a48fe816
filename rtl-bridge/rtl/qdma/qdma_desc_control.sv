// Everything that changes a descriptor queue from outside: context commands, doorbells, stops, failed reads.
//
// One operation at a time, 2 cycles each: choose one and read its queue's context, then carry it out. control_o is high in
// the second cycle; fetch and retirement leave the queue alone in it. Failed reads go before contexts that can't be
// served, stops, commands and doorbells. A command is answered one cycle later.
//
// A queue starts anew (flushed: everything fetched is forgotten, the next fetch is at the hardware context's cidx) with each
// CLR and INV of its software context, with a WR while qen was or becomes 0 or that takes its error away, and with WR, CLR and
// INV of its hardware context, which also set cidx. All but the last need a new doorbell then. The generation changes with
// each flush, whenever the queue starts or stops to run, and when it fails before it ran.
//
// A queue that fails keeps its indices, so that doorbells are still checked against what is complete.
//
// Contexts: words of the software context are kept as written, but irq_arm, which irq_disarm_* clears too, and err_wb_sent,
// which err_sent_* sets while the queue is in error (a doorbell or command of the same cycle wins). The hardware context keeps cidx and credits_used; idl_stp_b is qen, and
// desc_pending and fetch_pending (at most 15) are live. The credit context is only stored.
//
// Source: qdma.md sections 3.1 to 3.3, 5.1, 6 and 8.
`default_nettype none
module qdma_desc_control import qdma_pkg::*, qdma_desc_pkg::*; #(
  parameter int unsigned NumQueue  = 512,              // a power of two
  parameter int unsigned DescBytes = 8,                // 8 or 16
  parameter bit          H2c       = 1'b0
) (
  input  wire            clk,
  input  wire            rstn,                         // synchronous, active low
  input  wire config_t   config_i,
  // Commands, doorbells, stops
  input  wire            ctxt_valid_i,
  input  wire context_command_t ctxt_i,
  output logic           ctxt_done_o,
  output logic   [255:0] ctxt_rdata_o,
  input  wire            bell_valid_i,
  input  wire doorbell_t bell_i,
  output logic           bell_ready_o,
  input  wire            stop_valid_i,
  input  wire qid_t      stop_qid_i,
  input  wire      [1:0] stop_err_i,
  output logic           stop_ready_o,
  input  wire            irq_disarm_valid_i,
  input  wire qid_t      irq_disarm_qid_i,
  input  wire            err_sent_valid_i,
  input  wire qid_t      err_sent_qid_i,
  // A read failed; a queue's context can't be served (levels, until control_o)
  input  wire            failed_i,
  input  wire qid_t      failed_qid_i,
  input  wire generation_t failed_generation_i,
  input  wire fault_e    failed_fault_i,
  input  wire            impossible_i,
  input  wire qid_t      impossible_qid_i,
  // The operation's queue
  output qid_t           qid_o,
  input  wire queue_t    queue_i,                      // now
  output logic           control_o,                    // the queue changes in this cycle
  output logic           flush_o,
  output origin_t        origin_o,
  output logic           news_o,                       // consumers must know
  output fault_t         fault_o,                      // a register
  output logic           idle_o,                       // no operation is under way
  // Software contexts for others: read, then data in the next cycle, held
  input  wire            rd_i       [3],
  input  wire qid_t      rd_qid_i   [3],
  output software_t      rd_o       [3],
  input  wire qid_t      arm_qid_i  [2],               // irq_arm as it is now
  output logic           arm_o      [2]
);
  localparam int unsigned IndexWidth = NumQueue > 1 ? $clog2(NumQueue) : 1;
  typedef logic [IndexWidth-1:0] place_t;

  // ---- Choose ----
  typedef enum logic [2:0] {OpNone, OpFailed, OpImpossible, OpStop, OpContext, OpBell} op_e;
  op_e  op_q, op_d;
  qid_t qid_q, qid_d;

  always_comb begin
    op_d  = OpNone;
    qid_d = qid_q;
    if (op_q == OpNone) begin
      if (failed_i) begin
        op_d  = OpFailed;
        qid_d = failed_qid_i;
      end else if (impossible_i) begin
        op_d  = OpImpossible;
        qid_d = impossible_qid_i;
      end else if (stop_valid_i) begin
        op_d  = OpStop;
        qid_d = stop_qid_i;
      end else if (ctxt_valid_i && !ctxt_done_o) begin
        op_d  = OpContext;
        qid_d = ctxt_i.qid;
      end else if (bell_valid_i) begin
        op_d  = OpBell;
        qid_d = bell_i.qid;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (!rstn) op_q <= OpNone;
    else       op_q <= op_d;
    qid_q <= qid_d;
  end

  assign qid_o        = qid_q;
  assign idle_o       = op_q == OpNone;
  assign bell_ready_o = op_q == OpBell;
  assign stop_ready_o = op_q == OpStop;

  // ---- Contexts ----
  software_t software, software_d;
  stored_t   stored, stored_d;
  logic      arm_d, told_d, software_wr, stored_wr;
  logic [NumQueue-1:0] arm_q, told_q, failed_q;        // irq_arm, err_wb_sent, err is not 0

  logic      software_rd       [4];
  place_t    software_rd_index [4];
  software_t software_rd_data  [4];
  logic      stored_rd         [1];
  place_t    stored_rd_index   [1];
  stored_t   stored_rd_data    [1];

  qdma_context_mem #(.Width($bits(software_t)), .NumQueue(NumQueue), .Readers(4)) u_software (
    .clk, .rstn, .wr_i(software_wr), .wr_index_i(place_t'(qid_q)), .wr_data_i(software_d),
    .rd_i(software_rd), .rd_index_i(software_rd_index), .rd_data_o(software_rd_data));
  qdma_context_mem #(.Width($bits(stored_t)), .NumQueue(NumQueue), .Readers(1)) u_stored (
    .clk, .rstn, .wr_i(stored_wr), .wr_index_i(place_t'(qid_q)), .wr_data_i(stored_d),
    .rd_i(stored_rd), .rd_index_i(stored_rd_index), .rd_data_o(stored_rd_data));

  for (genvar i = 0; i < 3; i++) begin : gen_reader
    assign software_rd[i]       = rd_i[i];
    assign software_rd_index[i] = place_t'(rd_qid_i[i]);
    assign rd_o[i]              = software_rd_data[i];
  end
  assign software_rd[3]       = op_d != OpNone;
  assign software_rd_index[3] = place_t'(qid_d);
  assign software             = software_rd_data[3];
  assign stored_rd[0]         = op_d == OpContext;
  assign stored_rd_index[0]   = place_t'(qid_d);
  assign stored               = stored_rd_data[0];

  for (genvar i = 0; i < 2; i++) begin : gen_arm
    assign arm_o[i] = arm_q[place_t'(arm_qid_i[i])];
  end

  always_ff @(posedge clk) begin
    if (!rstn) begin
      arm_q    <= '0;
      told_q   <= '0;
      failed_q <= '0;
    end else begin
      if (irq_disarm_valid_i) arm_q[place_t'(irq_disarm_qid_i)] <= 1'b0;
      if (err_sent_valid_i && failed_q[place_t'(err_sent_qid_i)]) told_q[place_t'(err_sent_qid_i)] <= 1'b1;
      if (software_wr) begin
        arm_q[place_t'(qid_q)]    <= arm_d;
        told_q[place_t'(qid_q)]   <= told_d;
        failed_q[place_t'(qid_q)] <= software_d.ctxt.err != '0;
      end
    end
  end

  // ---- Contexts as the window shows them, and as a command leaves them. ----
  typedef enum logic [1:0] {KindSoftware, KindHardware, KindCredit, KindNone} kind_e;
  kind_e kind;
  logic [255:0] shown, changed;
  logic   [6:0] in_flight;
  logic         arm_now, told_now;

  always_comb begin
    unique case (ctxt_i.sel[3:1])
      3'd0:    kind = KindSoftware;
      3'd1:    kind = KindHardware;
      3'd2:    kind = KindCredit;
      default: kind = KindNone;
    endcase
  end

  always_comb begin
    shown     = '0;
    in_flight = queue_i.sent.reads - queue_i.delivered.reads;
    arm_now   = arm_q[place_t'(qid_q)] && !(irq_disarm_valid_i && irq_disarm_qid_i == qid_q);
    told_now  = told_q[place_t'(qid_q)] || (err_sent_valid_i && err_sent_qid_i == qid_q && failed_q[place_t'(qid_q)]);
    if (op_q == OpContext) begin
      unique case (kind)
        KindSoftware: begin
          shown     = {stored.word, software.ctxt};
          shown[16] = arm_now;
          shown[60] = told_now;
        end
        KindHardware: begin
          shown[15:0]  = queue_i.delivered.cidx;
          shown[31:16] = stored.credits_used;
          shown[40]    = software.ctxt.qen && queue_i.delivered.cidx != software.ctxt.pidx;
          shown[41]    = software.ctxt.qen;
          shown[46:43] = !queue_i.origin.run ? 4'd0 : in_flight > 7'd15 ? 4'd15 : in_flight[3:0];
        end
        KindCredit: shown[15:0] = stored.credits;
        default:    shown = '0;
      endcase
    end
    changed = '0;
    if (op_q == OpContext && ctxt_i.op == CtxtWrite) changed = (shown & ~ctxt_i.mask) | (ctxt_i.data & ctxt_i.mask);
  end

  // ---- A doorbell ----
  logic [15:0] entries;
  logic [16:0] outstanding;
  index_t      bell_pidx;
  logic        bell_fits;

  always_comb begin
    entries     = '0;
    outstanding = '0;
    bell_fits   = 1'b0;
    bell_pidx   = bell_i.data[15:0];
    if (op_q == OpBell) begin
      entries     = config_i.ring_size[software.ctxt.ring_select];
      outstanding = 17'(ring_distance(queue_i.done, software.ctxt.pidx, entries))
                  + 17'(ring_distance(software.ctxt.pidx, bell_pidx, entries));
      bell_fits   = entries >= 16'd3 && bell_pidx < entries - 16'd1 && software.ctxt.pidx < entries - 16'd1
                    && queue_i.done < entries - 16'd1 && outstanding <= 17'(entries) - 17'd2;
    end
  end

  // ---- Carry out. Without an operation nothing is copied, which would cost simulation time in every cycle. ----
  logic   anew, flush, run, run_d, keeps_failed, fails;
  index_t start;
  fault_t fault_d;
  logic   touches;                                     // the queue's software context or its standing changes

  assign run = queue_i.origin.run;

  always_comb begin
    software_d   = '0;
    stored_d     = '0;
    if (op_q != OpNone) begin
      software_d = software;
      stored_d   = stored;
    end
    arm_d        = arm_now;
    told_d       = told_now;
    touches      = 1'b0;
    stored_wr    = 1'b0;
    anew         = 1'b0;
    flush        = 1'b0;
    start        = queue_i.delivered.cidx;
    keeps_failed = 1'b1;
    fault_d      = '0;
    fault_d.h2c  = H2c;
    fault_d.qid  = qid_q;
    fault_d.cidx = queue_i.delivered.cidx;

    unique case (op_q)
      OpFailed: if (run && queue_i.origin.generation == failed_generation_i) begin
        touches                   = 1'b1;
        software_d.ctxt.err[0]    = 1'b1;
        fault_d.kind              = failed_fault_i;
      end
      OpImpossible: begin
        // Always an operation on the queue, so that fetch goes on; without fault if the context is gone meanwhile.
        touches = 1'b1;
        if (run && !possible(software.ctxt.desc_size, software.ctxt.bypass, software.ctxt.is_mm, DescBytes)) begin
          software_d.ctxt.err[0] = 1'b1;
          fault_d.kind           = FaultDescParam;
        end
      end
      OpStop: if (software.ctxt.qen) begin
        touches                   = 1'b1;
        software_d.ctxt.err = software.ctxt.err | stop_err_i;
      end
      OpBell: if (software.ctxt.qen) begin
        touches = 1'b1;
        if (bell_fits) begin
          software_d.ctxt.pidx = bell_pidx;
          software_d.rung          = 1'b1;
          arm_d                    = bell_i.data[16];
        end else begin
          software_d.ctxt.err[0] = 1'b1;
          fault_d.kind           = FaultInvalidPidx;
          fault_d.old_pidx       = software.ctxt.pidx;
          fault_d.new_pidx       = bell_pidx;
        end
      end
      OpContext: if (ctxt_i.op != CtxtRead) begin
        unique case (kind)
          KindSoftware: begin
            touches   = 1'b1;
            stored_wr = 1'b1;
            if (ctxt_i.op == CtxtInvalidate) begin
              software_d.ctxt.qen = 1'b0;
            end else begin
              {stored_d.word, software_d.ctxt} = changed;
              software_d.ctxt.irq_arm           = 1'b0;
              software_d.ctxt.err_wb_sent       = 1'b0;
              arm_d                             = changed[16];
              told_d                            = changed[60];
            end
            if (ctxt_i.op != CtxtWrite) stored_d.credits = '0;
            keeps_failed = software_d.ctxt.err != '0 || software.ctxt.err == '0;
            anew         = !software.ctxt.qen || !software_d.ctxt.qen || !keeps_failed;
          end
          KindHardware: begin
            touches               = 1'b1;
            stored_wr             = 1'b1;
            flush                 = 1'b1;
            start                 = changed[15:0];
            stored_d.credits_used = changed[31:16];
          end
          KindCredit: begin
            stored_wr        = 1'b1;
            stored_d.credits = changed[15:0];
          end
          default: stored_wr = 1'b0;
        endcase
      end
      default: touches = 1'b0;
    endcase

    if (anew) begin
      flush           = 1'b1;
      software_d.rung = 1'b0;
    end
    run_d = software_d.ctxt.qen && software_d.rung && software_d.ctxt.err == '0;
    fails = software.ctxt.err == '0 && software_d.ctxt.err != '0;
  end

  assign software_wr = touches;
  assign control_o   = touches;
  assign flush_o     = touches && flush;
  assign news_o      = touches && (flush || run != run_d || fails || op_q == OpContext || fault_d.kind != FaultNone);
  assign origin_o    = '{run: run_d, generation: queue_i.origin.generation + generation_t'(flush || run != run_d || fails),
                         ring_select: software_d.ctxt.ring_select, start: flush ? start : queue_i.origin.start};

  always_ff @(posedge clk) begin
    if (!rstn) begin
      ctxt_done_o <= 1'b0;
      fault_o     <= '0;
    end else begin
      ctxt_done_o <= op_q == OpContext;
      if (fault_d.kind != FaultNone || fault_o.kind != FaultNone) fault_o <= fault_d;
    end
    if (op_q == OpContext && ctxt_i.op == CtxtRead) ctxt_rdata_o <= shown;
  end

  wire unused = ^{config_i, bell_i, ctxt_i.sel[0], queue_i};
endmodule
`default_nettype wire
